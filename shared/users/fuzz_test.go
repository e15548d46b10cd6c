package users

import (
	"strings"
	"testing"
)

func FuzzOnlyAHashThatFerryWritesIsRead(f *testing.F) {
	for _, s := range []string{
		phc(
			DefaultParams(),
			make([]byte, 16),
			make([]byte, hashSize),
		), "$argon2id$v=19$m=64,t=1,p=1$AAAA$AAAA", "$argon2i$v=19$m=64,t=1,p=1$$",
		"$argon2id$v=19$m=4294967295,t=4294967295,p=255$$" + strings.Repeat(
			"A",
			43,
		), "$argon2id$v=19 $m=+64,t=1,p=1x$AAAA$" + strings.Repeat("A", 43), "", "$$$$$",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, salt, sum, err := parsePHC(s)
		if err != nil {
			return
		}
		if again := phc(p, salt, sum); again != s {
			t.Errorf("%q is read as %q", s, again)
		}
		if p.Memory > 1<<20 || p.Time > 100 {
			t.Errorf("%q takes %d KiB and %d rounds", s, p.Memory, p.Time)
		}
	})
}
