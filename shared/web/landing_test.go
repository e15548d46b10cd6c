package web_test

import (
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/service"
)

// wantUses checks how often the first file was downloaded and previewed.
func (v visitor) wantUses(what string, downloads, previews int) {
	v.Helper()
	type uses struct{ Count, Previews int }
	got := apitest.Read[struct{ Downloads uses }](v.Ask("GET /files/1", "").Want(200))
	expect.Equal(v.TB, "downloads and previews by "+what, got.Downloads, uses{downloads, previews})
}

func TestALinksPageSaysWhatItIsAndCountsNothing(t *testing.T) {
	v := visit(t)
	link := v.Upload("file=photo.jpg&type=image/jpeg", "not really one").LinkURL
	page := pageOf(link)
	a := v.opens(
		page,
		200,
		"<bdi>ann</bdi> sends you a picture",
		"photo.jpg",
		"14 B, JPG picture",
		"Expires",
		"Download, 14",
		"&amp;download=1",
		"CRC64NVME",
		"#image",
		`curl -OJL &#34;`+v.Base+"/download/file?k="+valueOf(page, "k"),
		"-downloads left",
		"<title>A file for you",
		`<meta property="og:title" content="Ferry">`,
	)
	for _, told := range allOf(a.Text, `(<meta[^>]*>|[^>]*</title>)`) {
		v.has("what others are told", told, "-photo")
	}
	v.send("GET "+page, "", "User-Agent", "Slackbot-LinkExpanding 1.0").Want(200)
	v.leads(v.post("l", "k", valueOf(page, "k")), "l?k="+valueOf(page, "k"))
	v.wantUses("pages", 0, 0)
	v.open(addresses(a, "&download=1")[0]).Want(200)
	v.wantUses("the button", 1, 0)
}

func TestALinksPageShowsWhatCannotRun(t *testing.T) {
	v := visit(t)
	attack := `<svg xmlns="http://www.w3.org/2000/svg"><script>fetch("/v1/me")</script></svg>`
	for name, k := range map[string]struct{ content, shows string }{
		"a.svg":     {attack, `<img src="v1/download/file?`},
		"a.html":    {attack, ""},
		"a.txt":     {attack, "&lt;svg xmlns="},
		"zero.txt":  {"a\x00", ""},
		"lies.txt":  {"\xff\xfe", ""},
		"empty.txt": {"", ""},
		"a.mp4":     {"x", "<video"},
		"a.m4a":     {"x", "<audio"},
		"x":         {"x", "1 B</span>"},
	} {
		a := v.opens(v.link("file="+name, k.content), 200, k.shows, "-<svg xmlns", "-<script>")
		if k.shows == "" {
			v.shows(a, 200, "-<img", "-<video", "-<audio", `-<pre class="frame`)
		}
	}
	v = serve(t, set(func(s *service.Settings) { s.RedirectOver = 100 })) // the store has the bytes
	v.opens(
		v.link("file=long.log", strings.Repeat("a line.\n", 40)+"line 41."),
		200,
		strings.Repeat("a line.\n", 40),
		"-line 41.",
	)
}

func TestALinkWithAPasswordHidesItsNameUntilItIsOpened(t *testing.T) {
	v := visit(t)
	page := v.link("file=secret.txt&downloads=2", "hello", "Ferry-Link-Password", "open sesame")
	v.opens(
		page,
		200,
		"<bdi>ann</bdi> sends you a file with a password",
		"-secret",
		"-CRC64",
		`type="password"`,
		"2 downloads left",
	)
	token := valueOf(page, "k")
	v.shows(v.post("l", "k", token, "password", "wrong"), 401,
		"This is not the password", `role="alert"`, `aria-invalid="true"`, "-secret")
	v.post("l", "k", token, "password", "").Want(401)
	a := v.post("l", "k", token, "password", "open sesame")
	v.shows(a, 200, "secret.txt", "claim=", "2 downloads left", "curl -OJL -u :PASSWORD &#34;", "-hello")
	button := addresses(a, "&download=1")[0]
	expect.Equal(t, "the file", v.open(button).Want(200).Text, "hello")
	v.opens(page, 200, "1 download left")
	v.Clock.Advance(25 * time.Hour)
	v.leads(v.open("l?k="+token+"&claim="+valueOf(button, "claim")), "l?k="+token)
}

func TestADeadLinkSaysWhyAndWhatToDo(t *testing.T) {
	v := visit(t)
	expired, usedUp := v.link("file=a.txt&expires=1h", "x"), v.Upload("file=a.txt&downloads=1", "x").LinkURL
	ended, deleted, kept := v.link("file=a.txt", "x"), v.link("file=a.txt", "x"), v.link("file=a.txt", "x")
	v.Get(v.Send("GET "+usedUp, "").Want(302).Header.Get("Location"))
	v.Ask("DELETE /files/3/links/own", "").Want(200)
	v.Ask("DELETE /files/4", "").Want(200)
	backup := pageOf(v.Ask("DELETE /files/5", "").Want(200).File().LinkURL)
	v.opens(backup, 200, "a.txt", "v1/download/file/backup?")
	v.Ask("POST /files/5/restore", "").Want(200)
	v.Clock.Advance(2 * time.Hour)
	for page, title := range map[string]string{
		expired: "This link has expired", pageOf(usedUp): "This link is used up", ended: "This link was withdrawn",
		deleted: "The file of this link was deleted", backup: "This link has ended",
	} {
		v.opens(page, 401, "<h1>"+title+"</h1>", "What you can do", "<bdi>ann</bdi>", "<time datetime=")
	}
	for page, status := range map[string]int{kept[:len(kept)-1] + "_": 401, "l?k=%00": 401, "l": 400} {
		v.opens(page, status, "<h1>There is no such link</h1>", "What you can do")
	}
}
