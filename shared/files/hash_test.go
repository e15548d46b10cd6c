package files_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
)

// TestHashOfLargeFileIsCheckedOverSeveralRequests repeats the completion until the
// whole file is hashed. Each request reaches another process.
func TestHashOfLargeFileIsCheckedOverSeveralRequests(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("0123456789"), 5<<20/10+1000)
	good := sha256.Sum256(content)
	for what, k := range map[string]struct {
		stated  []byte
		objects int // in the end
	}{
		"it matches": {good[:], 1},
		"it differs": {bytes.Repeat([]byte{1}, 32), 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			service := func() *files.Service {
				config := c.Service.Files().Config
				config.HashStep = 2 << 20
				return files.New(config)
			}
			sess, err := service().BeginSession(t.Context(), c.by(), files.Plan{
				Owner:  "alice",
				Name:   "large",
				Length: int64(len(content)),
				SHA256: k.stated,
			}, nil)
			c.must(err)
			layout := service().Layout(sess)
			for number := 1; number <= layout.Count(); number++ {
				from := layout.Offset(number)
				part := bytes.NewReader(content[from : from+layout.Size(number)])
				c.must(failure(service().WritePart(t.Context(), sess, number, part, nil)))
			}
			waits := 0
			for {
				now, err := service().Session(t.Context(), c.by(), sess.ID, true)
				c.must(err)
				_, err = service().Complete(t.Context(), now, nil)
				if fault.Is(err, fault.Unavailable) && waits < 10 {
					waits++
					if want := fmt.Sprintf("%d of %d bytes",
						waits*2<<20, len(content)); !strings.Contains(err.Error(), want) {
						t.Fatalf("the fault is %v, want it to say %q", err, want)
					}
					continue
				}
				says := fmt.Sprintf("%x", k.stated)
				refused := fault.Is(err, fault.Invalid) && strings.Contains(err.Error(), says)
				if (err == nil) != (k.objects == 1) || err != nil && !refused {
					t.Errorf("completing gave %v", err)
				}
				expect.Equal(t, "objects", len(c.Objects(blob.Files)), k.objects)
				break
			}
			expect.Equal(t, "repetitions", waits, 2)
		})
	}
}
