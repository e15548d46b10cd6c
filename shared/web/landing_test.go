package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
)

// sharer is a user who shares files.
type sharer struct{ apitest.Caller }

func begin(t testing.TB, options ...apitest.Option) sharer {
	t.Helper()
	s := sharer{apitest.Begin(t, options...)}
	s.CountAtOnce()
	return s
}

// browser is what a browser sends with each request for a page.
var browser = []string{"User-Agent", "Mozilla/5.0 Chrome/120", "Accept", "text/html", "Accept-Language", "en"}

// page returns the page of a link, as a browser gets it.
func (s sharer) page(link string, headers ...string) apitest.Answer {
	s.Helper()
	to := link
	if _, query, ok := strings.Cut(link, "/v1/download/file"); ok {
		to = "l" + strings.TrimPrefix(query, "/backup")
	}
	return s.Send("GET "+s.Root+"/"+to, "", append(slices.Clone(browser), headers...)...)
}

// post sends a page's form, as a browser does.
func (s sharer) post(page string, form url.Values, headers ...string) apitest.Answer {
	s.Helper()
	all := append([]string{"Content-Type", "application/x-www-form-urlencoded", "Origin", s.Root, "Sec-Fetch-Site",
		"same-origin"}, browser...)
	return s.Send("POST "+s.Root+"/"+page, form.Encode(), append(all, headers...)...)
}

// wantTexts checks that a page has texts, or lacks those that begin with "-".
func wantTexts(t testing.TB, a apitest.Answer, texts ...string) {
	t.Helper()
	all := strings.NewReplacer("\u00a0", " ", "“\u2068", "“", "\u2069”", "”").Replace(a.Text)
	_, main, _ := strings.Cut(all, "<main")
	for _, text := range texts {
		unwanted, without := strings.CutPrefix(text, "-")
		if without && strings.Contains(all, unwanted) {
			t.Errorf("the page has %q:\n%s", unwanted, main)
		} else if !without && !strings.Contains(all, text) {
			t.Errorf("the page lacks %q:\n%s", text, main)
		}
	}
}

func tokenOf(link string) string {
	u, _ := url.Parse(link)
	return u.Query().Get("k")
}

func (s sharer) wantUses(what, link string, downloads, previews int) {
	s.Helper()
	all := apitest.Read[struct {
		Downloads struct{ Count, Previews int }
	}](s.Ask("GET /files/1", "").Want(200))
	if got := all.Downloads; got.Count != downloads || got.Previews != previews {
		s.Errorf("%s: %d downloads and %d previews, want %d and %d", what, got.Count, got.Previews, downloads, previews)
	}
}

func TestALinksPageSaysWhatItIsAndCountsNothing(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.Upload("file=photo.jpg&type=image/jpeg", "not really one").LinkURL
	a := s.page(link).Want(200)
	wantTexts(t, a, "<bdi>ann</bdi> sends you a picture", "photo.jpg", "14 B, JPG picture", "Expires", "Download, 14",
		"&amp;download=1", "CRC64NVME", "#image", `curl -OJL &#34;`+s.Base+"/download/file?k="+tokenOf(link),
		"-downloads left",
		"<title>A file for you", `<meta property="og:title" content="Ferry">`)
	for _, tag := range strings.SplitAfter(a.Text, ">") {
		if (strings.Contains(tag, "<meta") || strings.Contains(tag, "title")) && strings.Contains(tag, "photo") {
			t.Errorf("%s tells the name", tag)
		}
	}
	s.page(link, "User-Agent", "Slackbot-LinkExpanding 1.0").Want(200)
	s.wantUses("pages", link, 0, 0)
	s.Get(link + "&preview")
	s.wantUses("a preview", link, 0, 0)
	s.Send("GET "+link+"&download=1", "", browser...).Want(200)
	s.wantUses("the button", link, 1, 0)
}

func TestALinksPageShowsWhatCannotRun(t *testing.T) {
	t.Parallel()
	s := begin(t)
	attack := `<svg xmlns="http://www.w3.org/2000/svg"><script>fetch("/v1/me")</script></svg>`
	for _, k := range []struct{ name, mime, content, shows string }{
		{"a.svg", "image/svg+xml", attack, `<img src="v1/download/file?`},
		{"a.html", "text/html", attack, ""},
		{"a.xml", "application/xml", attack, ""},
		{"a.pdf", "application/pdf", "%PDF-1.7", ""},
		{"a.txt", "text/plain", attack, "&lt;svg xmlns="},
		{"a.csv", "", "a,b\n", "a,b"},
		{"a.bin", "", "\x00\x01", ""},
		{"lies.txt", "", "\xff\xfe", ""},
		{"a.mp4", "video/mp4", "x", "<video"},
		{"a.m4a", "audio/mp4", "x", "<audio"},
		{"a.heic", "image/heic", "x", ""},
		{"empty.txt", "text/plain", "", ""},
	} {
		link := s.Upload("file="+k.name, k.content, "Content-Type", k.mime).LinkURL
		a := s.page(link).Want(200)
		wantTexts(t, a, k.shows, "-<svg xmlns", "-<script>")
		if k.shows == "" {
			wantTexts(t, a, "-<img", "-<video", "-<audio", "-<pre class=\"frame")
		}
		got := s.Send("GET "+link+"&preview", "").Want(200)
		got.WantHeaders("Content-Security-Policy", "sandbox; default-src 'none'", "X-Content-Type-Options", "nosniff")
		if !strings.HasPrefix(got.Header.Get("Content-Disposition"), "attachment;") {
			t.Errorf("%s is shown inline", k.name)
		}
	}
	var lines strings.Builder
	for i := range 50 {
		fmt.Fprintf(&lines, "line %d.\n", i+1)
	}
	s = begin(t, func(s *api.Settings, _ *local.ServiceOptions) { s.RedirectOver = 100 })
	a := s.page(s.Upload("file=long.log", lines.String()).LinkURL) // the store has the bytes
	wantTexts(t, a, "line 40.", "-line 41.")
}

func TestHostileTextsStayTextsOnALinksPage(t *testing.T) {
	t.Parallel()
	s := begin(t)
	name, message := `"><img src=x onerror=alert(1)>.png`, url.QueryEscape("</blockquote><script>x</script>")
	link := s.Upload("file="+url.QueryEscape(name)+"&m=bob@example.com&i="+message, "x").LinkURL
	s.Deliver()
	inbox := s.Send("GET "+s.Root+"/inbox", "", "Accept", "application/json").Want(200).Text
	mailed := regexp.MustCompile(`http[^\s"\\]*k=[\w-]+`).FindString(strings.ReplaceAll(inbox, `\u0026`, "&"))
	wantTexts(t, s.page(mailed).Want(200), "&lt;script&gt;x", `<blockquote dir="auto">`, "-<script>x")
	for _, at := range []string{link, mailed, link + "&language=%22%3E%3Cscript%3E"} {
		wantTexts(t, s.page(at).Want(200), "-<img src=x", "&#34;&gt;&lt;img src=x onerror=alert(1)&gt;.png</bdi>")
	}
}

func TestALinkWithAPasswordHidesItsNameUntilItIsOpened(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.Upload("file=secret.txt&downloads=2", "hello", "Ferry-Link-Password", "open sesame").LinkURL
	a := s.page(link).Want(200)
	wantTexts(t, a, "<bdi>ann</bdi> sends you a file with a password", "-secret", "-CRC64", `type="password"`,
		"2 downloads left")
	form := url.Values{"k": {tokenOf(link)}, "password": {"wrong"}}
	wantTexts(t, s.post("l", form).Want(401), "This is not the password", `role="alert"`, `aria-invalid="true"`,
		"-secret")
	form.Set("password", "")
	s.post("l", form).Want(401)
	s.post("l", form, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Want(403)
	form.Set("password", "open sesame")
	a = s.post("l", form).Want(200)
	wantTexts(t, a, "secret.txt", "claim=", "2 downloads left", "curl -OJL -u :PASSWORD &#34;", "-hello")
	_, rest, _ := strings.Cut(a.Text, `class="button primary" href="`)
	button, _, _ := strings.Cut(strings.ReplaceAll(rest, "&amp;", "&"), `"`)
	apitest.Equal(t, "the file", s.Send("GET "+s.Root+"/"+button, "", browser...).Want(200).Text, "hello")
	wantTexts(t, s.page(link), "1 download left")

	_, claim, _ := strings.Cut(button, "claim=")
	claim, _, _ = strings.Cut(claim, "&")
	s.Clock.Advance(25 * time.Hour)
	gone := s.page("l?k=" + tokenOf(link) + "&claim=" + claim).Want(303)
	gone.WantHeaders("Location", "l?k="+tokenOf(link))
}

func TestAFormForALinkWithoutLimitsLeadsToItsPage(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.Upload("file=a.txt", "hello").LinkURL
	s.post("l", url.Values{"k": {tokenOf(link)}}).Want(303).WantHeaders("Location", "l?k="+tokenOf(link))
	s.wantUses("the form", link, 0, 0)
}

func TestADeadLinkSaysWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := func(query string) string { return s.Upload("file=a.txt"+query, "x").LinkURL }
	expired, usedUp, ended, deleted, kept := link("&expires=1h"), link("&downloads=1"), link(""), link(""), link("")
	to := s.Send("GET "+usedUp, "").Want(302).Header.Get("Location")
	s.Get(to)
	s.Ask("DELETE /files/3/links/own", "").Want(200)
	s.Ask("DELETE /files/4", "").Want(200)
	backup := s.Ask("DELETE /files/5", "").Want(200).File().LinkURL
	wantTexts(t, s.page(backup).Want(200), "a.txt", "v1/download/file/backup?")
	s.Ask("POST /files/5/restore", "").Want(200)
	s.Clock.Advance(2 * time.Hour)
	for link, title := range map[string]string{
		expired: "This link has expired", usedUp: "This link is used up", ended: "This link was withdrawn",
		deleted: "The file of this link was deleted", backup: "This link has ended",
		kept[:len(kept)-1] + "_": "There is no such link",
	} {
		a := s.page(link).Want(401)
		wantTexts(t, a, "<h1>"+title+"</h1>", "What you can do")
		if title != "There is no such link" {
			wantTexts(t, a, "<bdi>ann</bdi>", "<time datetime=")
		}
	}
	wantTexts(t, s.page("l").Want(400), "There is no such link")
	wantTexts(t, s.page("l?k=%00").Want(401), "There is no such link")
}

func TestAFileOfAGuestNeedsNoSender(t *testing.T) {
	t.Parallel()
	s := begin(t)
	request := s.Ask("POST /requests", `{"title":"x"}`).Want(201)
	at := apitest.Read[struct{ LinkURL string }](request).LinkURL
	s.Send("PUT "+at+"&file=a.png", "x", "User-Agent", "curl/8").Want(200)
	file := s.Ask("GET /download/list", "").Want(200).File()
	wantTexts(t, s.page(file.LinkURL).Want(200), "<h1>A picture for you</h1>")
}
