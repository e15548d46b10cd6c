package upload_test

import (
	"strings"
	"testing"

	"ferry/shared/api/upload"
	"ferry/shared/envelope"
)

func FuzzDigestIsReadOrRefused(f *testing.F) {
	for _, seed := range []string{"", digestOf("x"), digestOf("x") + ";p=1", "sha-512=:AAAA:," + digestOf("x"), "sha-256=::", "sha-256=:AAAA", "sha-256", ",,;=:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		sum, err := upload.ReprDigest(header)
		switch {
		case err != nil && (!envelope.IsFault(err, envelope.Invalid) || sum != nil):
			t.Errorf("%q gives %x and %v", header, sum, err)
		case err == nil && sum != nil && len(sum) != 32:
			t.Errorf("%q gives %d bytes", header, len(sum))
		case err == nil && sum == nil && strings.HasPrefix(header, "sha-256="):
			t.Errorf("%q is ignored", header)
		}
	})
}
