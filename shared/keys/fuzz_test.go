package keys_test

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"ferry/shared/keys"
)

func FuzzATokenCarriesWhatItWasMadeFor(f *testing.F) {
	key, err := keys.Parse(strings.Repeat("A", 43))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"alice", "ann@example.com", " Ann@Example.COM\t", "İ@example.com", "a\x00b", ""} {
		f.Add(name, key.Stop(name))
	}
	f.Add("x", key.Stop("ann@example.com")+"=")
	f.Fuzz(func(t *testing.T, name, token string) {
		made, err := keys.RandomTokenFor(bytes.NewReader(make([]byte, keys.TokenSize)), name)
		if got, ok := keys.TokenName(made); err != nil || got != name && ok || ok == (name == "") {
			t.Errorf("the token for %q carries %q, %v", name, got, ok)
		}
		stop := key.Stop(name)
		if got, ok := key.StopAddress(stop); ok != (strings.TrimSpace(name) != "") ||
			ok && !strings.EqualFold(key.Stop(got), stop) {
			t.Errorf("the stop token for %q is for %q, %v", name, got, ok)
		}
		if got, ok := key.StopAddress(token); ok && key.Stop(got) != token {
			t.Errorf("%q stops mail to %q", token, got)
		}
		for param, link := range map[string]string{
			"t": keys.StopLink("https://example.com/v1", name, stop),
			"k": keys.ChangeLink("https://example.com/v1", name, stop),
		} {
			u, err := url.Parse(link)
			if err != nil ||
				u.Query().Get("lang") != name ||
				u.Query().Get(param) != stop ||
				len(u.Query()) != 2 ||
				u.Host != "example.com" {
				t.Errorf("the link is %q", link)
			}
		}
	})
}
