package auth

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
)

func FuzzOnlyAHashThatFerryWritesIsRead(f *testing.F) {
	for _, s := range []string{
		phc(DefaultParams(), make([]byte, 16), make([]byte, hashSize)), "$argon2id$v=19$m=64,t=1,p=1$AAAA$AAAA", "$argon2i$v=19$m=64,t=1,p=1$$",
		"$argon2id$v=19$m=4294967295,t=4294967295,p=255$$" + strings.Repeat("A", 43), "$argon2id$v=19 $m=+64,t=1,p=1x$AAAA$" + strings.Repeat("A", 43), "", "$$$$$",
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

func FuzzATokenCarriesWhatItWasMadeFor(f *testing.F) {
	key, err := ParseLinkKey(strings.Repeat("A", 43))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"alice", "ann@example.com", " Ann@Example.COM\t", "İ@example.com", "a\x00b", ""} {
		f.Add(name, key.Stop(name))
	}
	f.Add("x", key.Stop("ann@example.com")+"=")
	f.Fuzz(func(t *testing.T, name, token string) {
		made, err := RandomTokenFor(bytes.NewReader(make([]byte, TokenSize)), name)
		if got, ok := TokenName(made); err != nil || got != name && ok || ok == (name == "") {
			t.Errorf("the token for %q carries %q, %v", name, got, ok)
		}
		stop := key.Stop(name)
		if got, ok := key.StopAddress(stop); ok != (strings.TrimSpace(name) != "") || ok && !strings.EqualFold(key.Stop(got), stop) {
			t.Errorf("the stop token for %q is for %q, %v", name, got, ok)
		}
		if got, ok := key.StopAddress(token); ok && key.Stop(got) != token {
			t.Errorf("%q stops mail to %q", token, got)
		}
		for param, link := range map[string]string{"t": StopLink("https://example.com/v1", name, stop), "k": ChangeLink("https://example.com/v1", name, stop)} {
			u, err := url.Parse(link)
			if err != nil || u.Query().Get("lang") != name || u.Query().Get(param) != stop || len(u.Query()) != 2 || u.Host != "example.com" {
				t.Errorf("the link is %q", link)
			}
		}
	})
}
