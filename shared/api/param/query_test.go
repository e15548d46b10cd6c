package param_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ferry/shared/api/param"
	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/notify/texts"
	"ferry/shared/users"
	"ferry/shared/wire"
)

func TestFormIsReadOnlyFromTheBody(t *testing.T) {
	t.Parallel()
	const urlencoded = "application/x-www-form-urlencoded"
	read := func(kind, body string, required bool) (string, error) {
		r := httptest.NewRequest("POST", "/?name=query", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		form, err := param.Form(r, required)
		return form.Get("name"), err
	}
	for _, kind := range []string{urlencoded, urlencoded + "; charset=UTF-8"} {
		name, err := read(kind, "name=a+b%21", true)
		expect.NoErr(t, err)
		expect.Equal(t, kind, name, "a b!")
	}
	for kind, body := range map[string]string{"application/json": `{"name":"x"}`, "": "name=x"} {
		name, err := read(kind, body, false)
		expect.NoErr(t, err)
		expect.Equal(t, kind, name, "")
		_, err = read(kind, body, true)
		expect.Fault(t, kind, err, fault.Invalid)
	}
	for _, body := range []string{"name=%zz", "name=%ff", "zz=x;y=z"} {
		_, err := read(urlencoded, body, false)
		if !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "zz") {
			t.Errorf("%s: the error is %v", body, err)
		}
	}
	_, err := read(urlencoded, "name="+strings.Repeat("x", 16<<10), false)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); !tooLarge {
		t.Errorf("a long form: the error is %v, want one about the length", err)
	}
}

func TestQueryNumberMustBeWithinBounds(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]int64{
		"": 7, "n=": -1, "n=1": 1, "n=10": 10, "n=0": -1, "n=11": -1, "n=-1": -1, "n=x": -1, "n=1.5": -1, "n=+3": -1, "n=%2B3": 3,
		"n=99999999999999999999": -1, "n=1e1": -1, "n=%201": -1, "n=4;m=5": -1, "n=%zz": -1,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = query
		n, err := param.Number(r, "n", 1, 10, 7)
		if want < 0 && !fault.Is(err, fault.Invalid) || want >= 0 && (err != nil || n != want) {
			t.Errorf("%q gives %d, %v", query, n, err)
		}
	}
}

func TestFileHasOnlyOneID(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1": 1, "10": 10, "9223372036854775807": 9223372036854775807,
		"": 0, "0": 0, "-1": 0, "+1": 0, "01": 0, " 1": 0, "1 ": 0, "1e0": 0, "1_0": 0, "\uff11": 0, "1\x00": 0, "9223372036854775808": 0,
	} {
		r := httptest.NewRequest("DELETE", "/", nil)
		r.SetPathValue("id", text)
		n, err := param.FileID(r)
		if want == 0 && !fault.Is(err, fault.Invalid) || want > 0 && (err != nil || n != want) {
			t.Errorf("%q gives %d, %v", text, n, err)
		}
	}
}

func TestOnlyABrowserThatOpensAnAddressGetsAPage(t *testing.T) {
	t.Parallel()
	const table = `
		page  | Firefox                    | text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8 | Mozilla/5.0 (X11; Linux x86_64) Firefox/143.0 | navigate
		page  | Chrome                     | text/html,image/avif,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7 | Mozilla/5.0 Chrome/141.0 | navigate
		page  | Safari, without https      | text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8 | Mozilla/5.0 (iPhone) Safari/604.1 |
		page  | Internet Explorer          | text/html, application/xhtml+xml, image/jxr, */* | Mozilla/5.0 (Windows NT 10.0; Trident/7.0) |
		page  | a browser by another name  | text/html,*/*;q=0.8 | Lynx/2.9 | navigate
		page  | HTML last of all           | application/json, Text/HTML;q=0.1 | Mozilla/5.0 | navigate
		usual | a script of a page         | text/html,*/*;q=0.8 | Mozilla/5.0 | cors
		JSON  | a script that wants JSON   | application/json | Mozilla/5.0 | cors
		usual | no HTML                    | */* | Mozilla/5.0 | navigate
		usual | refused HTML               | text/html;q=0, */* | Mozilla/5.0 | navigate
		usual | PowerShell 5               | | Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.19041.1 |
		usual | Java's openStream          | text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2 | Java/21.0.4 |
		usual | Java, without a name       | text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2 | |
		usual | axios in a page            | application/json, text/plain, */* | Mozilla/5.0 | cors
		usual | axios in Node              | application/json, text/plain, */* | axios/1.7.2 |
		usual | Angular, without https     | application/json, text/plain, */* | Mozilla/5.0 |
		usual | curl                       | */* | curl/8.14.1 |
		usual | aria2                      | */*,application/metalink4+xml,application/metalink+xml | aria2/1.37.0 |
		usual | HTML, to a program         | text/html | curl/8.14.1 |
		JSON  | JSON, to a program         | application/json | curl/8.14.1 |
		JSON  | jQuery                     | application/json, text/javascript, */*; q=0.01 | Mozilla/5.0 | cors
		JSON  | JSON with a parameter      | application/json;v=2 | |
		JSON  | JSON or HTML, to a program | text/html, application/json | curl/8.14.1 |
		JSON  | JSON above anything        | */*;q=0.8, application/json;q=0.9 | |
		usual | JSON below anything        | application/json;q=0.5, */*;q=0.8 | |
		usual | JSON or Java's anything    | application/json, * | |
		text  | JSON below text            | text/plain, application/json;q=0.5 | |
		usual | JSON below a file's bytes  | application/octet-stream, application/json;q=0.9 | |
		text  | a malformed quality is 1   | text/plain;q=x, application/json;q=0.9 | |
		JSON  | as is one above 1, or NaN  | application/json;Q=7, text/plain;q=NaN | |
		JSON  | empty members              | ,, ;q=1, application/json | |
		text  | text                       | text/plain | curl/8.14.1 |
		text  | text, to a script          | text/plain, */*; q=0.01 | Mozilla/5.0 | cors`
	shapes := map[string]param.Shape{
		"usual": param.AsUsual,
		"page":  param.AsPage,
		"JSON":  param.AsJSON,
		"text":  param.AsText,
	}
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		cells := regexp.MustCompile(` *\| *`).Split(strings.TrimSpace(line), -1)
		r := &http.Request{Header: http.Header{
			"Accept":         {cells[2]},
			"User-Agent":     {cells[3]},
			"Sec-Fetch-Mode": {cells[4]},
		}}
		expect.Equal(t, cells[1], param.Asked(r), shapes[cells[0]])
	}
	r := &http.Request{Header: http.Header{"Accept": {"image/png;q=0.1", "text/html"}, "User-Agent": {"Mozilla/5.0"}}}
	expect.Equal(t, "several headers are one list", param.Asked(r), param.AsPage)
}

func TestLanguageComesFromLinkThenUserThenClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, query, user, accept, want string }{
		{what: "the default is English", want: "en"},
		{what: "the link's language wins", query: "lang=fr", user: "it", accept: "de", want: "fr"},
		{what: "the user's language is next", user: "it", accept: "de", want: "it"},
		{what: "the client's language is last", accept: "de", want: "de"},
		{what: "the client's best language wins", accept: "de;q=0.5, es;q=0.9, fr;q=0.1", want: "es"},
		{what: "an unknown language is ignored", accept: "ja, pt;q=0.9, it;q=0.1", want: "it"},
		{what: "an unknown language of a link is ignored", query: "lang=ja", user: "de", want: "de"},
		{what: "regions do not matter", query: "lang=de-CH", want: "de"},
		{what: "regions may follow an underscore", user: "fr_CA", want: "fr"},
		{what: "case does not matter", query: "lang=IT", want: "it"},
		{what: "nonsense is ignored", query: "lang=%2F..%2F", user: "<b>", accept: "????", want: "en"},
	} {
		r, err := http.NewRequest("GET", "/?"+c.query, nil)
		expect.NoErr(t, err)
		r.Header.Set("Accept-Language", c.accept)
		if got := param.Lang(r, users.User{Lang: c.user}); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func FuzzAnyAcceptHeaderIsRead(f *testing.F) {
	for _, seed := range []string{
		"text/html", "*/*;q=0.1", ";;q=,,", "a;q=1;q=2", "text/html;q=1e400", strings.Repeat(",", 1000), "\x00\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		r := &http.Request{Header: http.Header{"Accept": {accept}, "Accept-Language": {accept}}}
		if got := param.Asked(r); got != param.AsUsual && got != param.AsJSON && got != param.AsText {
			t.Errorf("%q of a program that has no name gets %d", accept, got)
		}
		r.URL = &url.URL{Path: "/"}
		if lang := param.Lang(r, users.User{}); !slices.Contains(texts.Tags(), lang) {
			t.Errorf("%q gives the language %q", accept, lang)
		}
	})
}

func TestAQueryOfADeliveryIsReadAsTheSame(t *testing.T) {
	t.Parallel()
	want := wire.Delivery{
		To: "bob", SMS: wire.Texts{"+393401234567"}, Mail: wire.Texts{"a@example.com", "b@example.com"}, Message: "hello",
		Notify: true, Lang: "it", Limits: wire.Limits{Expires: "7d", Downloads: 3},
	}
	got, err := param.Delivery(want.Query())
	expect.NoErr(t, err)
	expect.Equal(t, "the delivery", got, want)
	for query, wrong := range map[string]bool{
		"notify=": false, "notify=0": false, "notify=yes": true, "notify=2": true,
		"downloads=0": true, "downloads=1000001": true, "downloads=x": true, "downloads=": true,
	} {
		q, _ := url.ParseQuery(query)
		_, err := param.Delivery(q)
		expect.Equal(t, query, fault.Is(err, fault.Invalid), wrong)
	}
}
