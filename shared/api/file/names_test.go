package file_test

import (
	"mime"
	"net/url"
	"strings"
	"testing"
)

// oddNames returns names that uploaders may choose, good and bad.
func oddNames() []string {
	return []string{
		"report.pdf", "two  words.txt", "🎉 fête.txt", "写真.jpg", "صورة.png", `the "best" one's.txt`, "100%.txt", "a%22b%0d%0a.txt", "a;b=c,d.txt",
		"<script>alert(1)<script>.html", `"><img src=x onerror=alert(1)>`, "a' onmouseover='x", "{href}{until}.txt", "*?:|.txt", ".hidden", "CON", strings.Repeat("é", 120) + ".txt",
		"filename=evil.exe", "a+b.txt", "utf-8''x", "\\\".txt", "~", "&amp;.txt", "javascript:alert(1)",
	}
}

func TestDownloadKeepsItsName(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	for _, name := range oddNames() {
		name := strings.TrimPrefix(name, `\`)
		header := s.Request("GET", s.put(name, "x"), nil).Header.Get("Content-Disposition")
		kind, params, err := mime.ParseMediaType(header)
		if err != nil || kind != "attachment" || params["filename"] != name {
			t.Errorf("%q is sent as %s %q (%v)", name, kind, params["filename"], err)
		}
		// Old clients ignore filename* and use the name in the quotes.
		_, rest, _ := strings.Cut(header, `filename="`)
		plain, rest, _ := strings.Cut(rest, `"`)
		if plain == "" || strings.ContainsAny(plain, `/\%:*?<>|`) || strings.Trim(plain, ". ") == "" || !strings.HasPrefix(rest, "; filename*=UTF-8''") {
			t.Errorf("%q is %q to old clients", name, header)
		}
	}
}

func TestBrowserGetsAPageWithAnEscapedName(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
	for _, name := range oddNames() {
		link := s.put(name, "x")
		resp := s.Request("GET", link, nil, "Accept", accept)
		page := s.Text(resp)
		if strings.Count(page, "<script") > 0 || strings.Count(page, "<img") > 0 || strings.Count(page, "<h1>") != 1 || strings.Count(page, "'") > 0 {
			t.Errorf("%q is not escaped on the page:\n%s", name, page)
		}
		_, title, _ := strings.Cut(page, "<h1>")
		title, _, _ = strings.Cut(title, "</h1>")
		if strings.ContainsAny(title, `<>"'`) {
			t.Errorf("%q has the title %q", name, title)
		}
		wantHeaders(t, name, resp.Header, "Content-Type", "text/html; charset=utf-8", "X-Content-Type-Options", "nosniff",
			"Referrer-Policy", "no-referrer", "Cache-Control", "no-store", "Vary", "Accept", "Content-Disposition", "")
		if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "script-src") {
			t.Errorf("the page's policy is %q", csp)
		}
		_, href, _ := strings.Cut(page, `<a href="`)
		href, _, _ = strings.Cut(href, `"`)
		href = strings.ReplaceAll(href, "&amp;", "&")
		if !strings.HasPrefix(href, s.Base+link) {
			t.Fatalf("the page of %q links to %q", name, href)
		}
		bytes := s.Request("GET", strings.TrimPrefix(href, s.Base), nil, "Accept", accept)
		if got := s.Text(bytes); got != "x" {
			t.Errorf("the page's link gives %q", got)
		}
		wantHeaders(t, name, bytes.Header, "Content-Type", "application/octet-stream")
	}
}

func TestDownloadPageUsesTheLinksLanguage(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	link := s.put("a.txt", strings.Repeat("x", 1500))
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	for lang, words := range map[string][]string{
		"en": {"Download", "1.5\u00a0kB"}, "it": {"Scarica", "1,5\u00a0kB"}, "es": {"Descargar", "1,5\u00a0kB"},
		"fr": {"Télécharger", "1,5\u00a0ko"}, "de": {"Herunterladen", "1,5\u00a0kB"}, "xx": {"Download"}, "<script>": {"Download"},
	} {
		q := u.Query()
		q.Set("lang", lang)
		page := s.Text(s.Request("GET", u.Path+"?"+q.Encode(), nil, "Accept", "text/html"))
		for _, w := range words {
			if !strings.Contains(page, w) {
				t.Errorf("the page in %s lacks %q", lang, w)
			}
		}
		if strings.Contains(page, "<script>") {
			t.Errorf("the page has the language %q unescaped", lang)
		}
	}
}

func TestActiveContentIsSentAsAnAttachment(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	for _, kind := range []string{"text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "application/pdf", "text/javascript"} {
		link := s.put("page.html", "<script>alert(1)</script>", "Content-Type", kind)
		for what, path := range map[string]string{"the link": link, "the page's link": link + "&download=1"} {
			resp := s.Request("GET", path, nil)
			wantHeaders(t, what, resp.Header, "Content-Type", kind, "X-Content-Type-Options", "nosniff",
				"Content-Security-Policy", "sandbox; default-src 'none'")
			if d := resp.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment;") {
				t.Errorf("%s of type %s is sent with %q", what, kind, d)
			}
		}
	}
}

func TestFileKeepsItsMediaType(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	for stated, sent := range map[string]string{
		"image/png": "image/png", "": "application/octet-stream", "application/x-www-form-urlencoded": "application/octet-stream",
		"TEXT/Plain": "text/plain", "text/" + strings.Repeat("x", 200): "application/octet-stream",
	} {
		resp := s.Request("GET", s.put("a", "x", "Content-Type", stated), nil)
		wantHeaders(t, stated, resp.Header, "Content-Type", sent)
	}
}

func TestProgramCanAskForTheEnvelope(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	s.put("other.txt", "1")
	link := s.put("a.txt", "22")
	for _, accept := range []string{"application/json", "application/json, text/html;q=0.9", "text/plain;q=0.5,application/json"} {
		resp := s.Request("GET", link, nil, "Accept", accept)
		wantHeaders(t, accept, resp.Header, "Vary", "Accept")
		e := s.Decode(resp, 200)
		if e.Description != "handlerDownloadList:succsessfully" || e.User != "ann" || len(e.Files) != 1 ||
			e.Files[0].Name != "a.txt" || e.Files[0].Length != 2 || e.Files[0].ID != 2 || e.Files[0].LinkURL != s.Base+link {
			t.Errorf("%s: the envelope is %+v", accept, e)
		}
	}
	for _, accept := range []string{"", "*/*", "application/octet-stream", "text/plain, application/json;q=0.5", "application/json;q=0"} {
		if got := s.Text(s.Request("GET", link, nil, "Accept", accept)); got != "22" {
			t.Errorf("Accept %q gives %s", accept, got)
		}
	}
}
