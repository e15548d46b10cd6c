package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/auth"
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
		{"nothing is said", nil, ""},
		{"anything is taken", []string{"*/*"}, ""},
		{"a browser", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}, htmlType},
		{"a program", []string{"application/json"}, jsonType},
		{"a program that says its version", []string{"application/json;v=2"}, jsonType},
		{"case does not matter", []string{"Text/HTML"}, htmlType},
		{"the better quality wins", []string{"text/html;q=0.5, application/json"}, jsonType},
		{"the name of a quality may be a capital", []string{"text/html;Q=0.5, application/json;q=0.9"}, jsonType},
		{"the first of equals wins", []string{"application/json, text/html"}, jsonType},
		{"quality 0 is no", []string{"text/html;q=0, application/json;q=0.1"}, jsonType},
		{"another type first", []string{"application/octet-stream, text/html;q=0.9"}, ""},
		{"anything first", []string{"*/*, text/html;q=0.9"}, ""},
		{"several lines are one list", []string{"image/png;q=0.1", "text/html"}, htmlType},
		{"a quality that is none is passed over", []string{"text/html;q=x, application/json;q=0.9"}, htmlType},
		{"a quality above 1 counts as 1", []string{"application/json, text/html;q=7"}, jsonType},
		{"a quality that is not a number is passed over", []string{"application/json, text/html;q=NaN"}, jsonType},
		{"empty members are passed over", []string{",, ;q=1, text/html"}, htmlType},
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
		{"nothing is said", "", "", "", "en"},
		{"the link's goes first", "lang=fr", "it", "de", "fr"},
		{"then the user's", "", "it", "de", "it"},
		{"then the client's", "", "", "de", "de"},
		{"the client's best", "", "", "de;q=0.5, es;q=0.9, fr;q=0.1", "es"},
		{"one that Ferry does not speak is passed over", "", "", "ja, pt;q=0.9, it;q=0.1", "it"},
		{"the link's is passed over too", "lang=ja", "de", "", "de"},
		{"regions do not matter", "lang=de-CH", "", "", "de"},
		{"nor do they with an underscore", "", "fr_CA", "", "fr"},
		{"nor does case", "lang=IT", "", "", "it"},
		{"nonsense is passed over", "lang=%2F..%2F", "<b>", "????", "en"},
	} {
		r, err := http.NewRequest("GET", "/?"+c.query, nil)
		if err != nil {
			t.Fatal(err)
		}
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
			t.Errorf("%q prefers %q, which it does not name", accept, got)
		}
		r.URL = &url.URL{Path: "/"}
		if lang := api.Lang(r, auth.User{}); !slices.Contains(api.Languages(), lang) {
			t.Errorf("%q gives the language %q", accept, lang)
		}
	})
}
