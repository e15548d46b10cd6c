package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

const (
	htmlType = "text/html"
	jsonType = "application/json"
)

func TestClientsFirstMediaTypeIsPreferred(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		accept []string
		want   string
	}{
		{"no header means no preference", nil, ""},
		{"any type means no preference", []string{"*/*"}, ""},
		{"a browser prefers HTML", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}, htmlType},
		{"a program prefers JSON", []string{"application/json"}, jsonType},
		{"a parameter does not matter", []string{"application/json;v=2"}, jsonType},
		{"case does not matter", []string{"Text/HTML"}, htmlType},
		{"the higher quality wins", []string{"text/html;q=0.5, application/json"}, jsonType},
		{"the name of the quality may be a capital", []string{"text/html;Q=0.5, application/json;q=0.9"}, jsonType},
		{"the first of equal types wins", []string{"application/json, text/html"}, jsonType},
		{"quality 0 excludes a type", []string{"text/html;q=0, application/json;q=0.1"}, jsonType},
		{"another type wins", []string{"application/octet-stream, text/html;q=0.9"}, ""},
		{"any type wins", []string{"*/*, text/html;q=0.9"}, ""},
		{"several headers are one list", []string{"image/png;q=0.1", "text/html"}, htmlType},
		{"a malformed quality is ignored", []string{"text/html;q=x, application/json;q=0.9"}, htmlType},
		{"a quality above 1 counts as 1", []string{"application/json, text/html;q=7"}, jsonType},
		{"a quality of NaN is ignored", []string{"application/json, text/html;q=NaN"}, jsonType},
		{"empty members are ignored", []string{",, ;q=1, text/html"}, htmlType},
	} {
		r := &http.Request{Header: http.Header{"Accept": c.accept}}
		if got := api.Prefers(r, jsonType, htmlType); got != c.want {
			t.Errorf("%s: %q is preferred, want %q", c.what, got, c.want)
		}
	}
}

func TestLanguageComesFromLinkThenUserThenClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, query, user, accept, want string }{
		{"the default is English", "", "", "", "en"},
		{"the link's language wins", "lang=fr", "it", "de", "fr"},
		{"the user's language is next", "", "it", "de", "it"},
		{"the client's language is last", "", "", "de", "de"},
		{"the client's best language wins", "", "", "de;q=0.5, es;q=0.9, fr;q=0.1", "es"},
		{"an unknown language is ignored", "", "", "ja, pt;q=0.9, it;q=0.1", "it"},
		{"an unknown language of a link is ignored", "lang=ja", "de", "", "de"},
		{"regions do not matter", "lang=de-CH", "", "", "de"},
		{"regions may follow an underscore", "", "fr_CA", "", "fr"},
		{"case does not matter", "lang=IT", "", "", "it"},
		{"nonsense is ignored", "lang=%2F..%2F", "<b>", "????", "en"},
	} {
		r, err := http.NewRequest("GET", "/?"+c.query, nil)
		apitest.Must(t, err)
		r.Header.Set("Accept-Language", c.accept)
		if got := api.Lang(r, auth.User{Lang: c.user}); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func FuzzAnyAcceptHeaderIsRead(f *testing.F) {
	for _, seed := range []string{"text/html", "*/*;q=0.1", ";;q=,,", "a;q=1;q=2", "text/html;q=1e400", strings.Repeat(",", 1000), "\x00\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		r := &http.Request{Header: http.Header{"Accept": {accept}, "Accept-Language": {accept}}}
		got := api.Prefers(r, jsonType, htmlType)
		if got != "" && !strings.Contains(strings.ToLower(accept), got) {
			t.Errorf("%q prefers %q, which is not in it", accept, got)
		}
		r.URL = &url.URL{Path: "/"}
		if lang := api.Lang(r, auth.User{}); !slices.Contains(api.Languages(), lang) {
			t.Errorf("%q gives the language %q", accept, lang)
		}
	})
}
