package web_test

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/service"
	"ferry/shared/users"
	"ferry/shared/wire"
)

func TestTheSendingPageIntroducesItselfToVisitors(t *testing.T) {
	visit(t).opens("send", 200, "Whoever has a link needs no account", `href="login?next=send"`, `-type="file"`)
	v := serve(t, set(func(s *service.Settings) { s.Look.Intro = "For <all> of us" }))
	v.opens("send?failed=401", 200, "For &lt;all&gt; of us", "and nothing was sent")
}

func TestTheSendingPageOffersWhatTheServiceCanDo(t *testing.T) {
	visit(t).
		login("ann").
		opens("send", 200, "Drop files or folders here", `data-scope="user:ann"`, `action="v1/upload"`,
			"E-mail or text message", `<option value="7d"`, "expires in 30", "-data-room", "-Never", "Mail me", `name="d"`, `name="lang" value="en"`)
	v := serve(t, set(func(s *service.Settings) {
		s.Channels, s.MaxBody, s.Retention.KeepDays = []files.Channel{files.Mail}, 5_000_000, 0
	}))
	v.Add("eve", apitest.Quota(3_000_000), func(u *users.User) { u.Email = "" })
	v.login("eve").
		opens("send", 200, `data-room="3000000"`, "You have 3 MB left", "-E-mail or text message", `-name="c"`,
			"at most 5 MB", "never expires", "-Mail me")
	v.As("eve").Upload("file=a.txt&expires=1d", strings.Repeat("x", 750_000))
	v.opens("account", 200, "750 kB of 3 MB used", `value="25"`)
	v.opens("files", 200, "750 kB of 3 MB used", `<meter min="0" max="3000000" low="2400000" high="2850000"`)
	v.opens("files?id=1", 200, `<option value="">Never</option>`)
	v.Add("max", func(u *users.User) { u.KeepDays = 7 })
	v.login("max").opens("send", 200, "expires in 7", `-value="14d"`)
}

func TestAPlainFormSends(t *testing.T) {
	v := visit(t).login("ann")
	v.leads(
		v.upload(
			"v1/upload",
			"m",
			"bob@bücher.example, carla@example.com",
			"c",
			"+39 347 123 4567",
			"i",
			"Hello\r\nall",
			"expires",
			"7d",
			"downloads",
			"5",
			"password",
			"open sesame",
			"d",
			"",
			"notify",
			"1",
			"@a<b>.txt",
			"its words",
		),
		"../send?sent=1",
	)
	v.opens(
		"send?sent=1",
		200,
		"Sent to 3 people",
		"a&lt;b&gt;.txt",
		"393471234567",
		"@bücher.example",
		"Expires <time",
		"in 7 days",
		"5 downloads for each link",
		"With a password",
		"qr?k=",
		`&amp;lang=en" width="296"`,
		"-open sesame",
		"-its words",
	)
	got := apitest.Read[struct {
		Notify bool
		Links  []wire.Link
	}](v.Ask("GET /files/1", "").Want(200))
	expect.Equal(t, "the receipt and the links", []any{got.Notify, len(got.Links)}, []any{true, 4})
	v.leads(v.upload("v1/upload", "@b.txt", "1", "@c.txt", "2"), "../send?sent=2&sent=3")
	v.opens("send?sent=2&sent=3", 200, "Your links are ready", "b.txt", "c.txt", "No limit", "No password")
	v.leads(v.upload("v1/upload", "d", "Bob", "@d.txt", "1"), "../send?d=bob&sent=1")
	v.opens("send?d=bob&sent=1", 200, "d.txt", "in the files of <bdi>bob</bdi>", "-Open your files")
	v.opens("send?sent=1&language=de", 200, `&amp;lang=de" width="296"`, `v1/download/file?lang=de&amp;k=`)
	v.open("send?sent=99").Want(404)
	v.open("send?sent=..%2Fme").Want(400)
}

func TestWhatIsWrongWithAPlainFormStandsBesideItsField(t *testing.T) {
	v := visit(t).login("ann")
	many := "bob@example.com"
	for i := range 23 {
		many += fmt.Sprintf("; a%d@example.com", i)
	}
	for name, k := range map[string]struct{ value, says string }{
		"m":         {"bob", `id="m-error" role="alert">An e-mail address among these`},
		"c":         {"12", `id="c-error"`},
		"i":         {strings.Repeat("x", 20_000), `id="i-error"`},
		"d":         {"nobody", `id="d-error"`},
		"downloads": {"0", `id="downloads-error"`},
		"password":  {" x", `id="lock-error"`},
		"expires":   {"x", "<p>The form was not complete"},
	} {
		v.leads(v.upload("v1/upload", name, k.value, "@a", "1"), "../send?failed=400&parameter="+name)
		v.opens("send?failed=400&parameter="+name, 200, k.says)
	}
	v.leads(v.upload("v1/upload", "@a", "1", "m", "bob@example.com"), "../send?failed=400&parameter=m")
	v.leads(v.upload("v1/upload", "m", many, "@a", "1"), "../send?failed=400&parameter=c%2C+m")
	v.opens("send?failed=400&parameter=c%2C+m", 200, "too many recipients", "-<p>These are too many")
	expect.Equal(t, "files that were stored", len(v.Files()), 0)
	v.opens("send?failed=<b>&parameter=<i>", 200, "-<i>", `-class="error"`)
	v.opens("send?failed=413&parameter=%3Ci%3E", 200, "not enough room")
	refused := v.another(desk).upload("v1/upload", "@a", "1")
	refused.WantHeaders("WWW-Authenticate", "") // which would make a browser ask for a password
	v.leads(refused, "../send?failed=401")
}

func TestOnlyAPagesFormHasParametersAsFields(t *testing.T) {
	v := visit(t).login("ann")
	form, kind := apitest.Form("d", "nobody", "@a", "")
	v.Ask("POST /upload", form, "Content-Type", kind, "Accept", "text/html").Want(200)
	v.Send("POST /upload", form, "Content-Type", kind, "Accept", "text/html").Want(401)
	v.send("POST v1/upload", form, "Content-Type", kind, "Accept", "*/*", "Sec-Fetch-Site", "same-origin").Want(200)
}

func TestAQRCodeIsOfALinkAlone(t *testing.T) {
	v, token := visit(t), strings.Repeat("k", 43)
	for _, name := range []string{"k", "z", "r"} {
		a := v.open("qr?lang=de&" + name + "=" + token).Want(200)
		a.WantHeaders("Content-Type", "image/svg+xml", "Cache-Control", "no-store", "Content-Security-Policy",
			"default-src 'none'; frame-ancestors 'none'")
		expect.NoErr(t, xml.Unmarshal([]byte(a.Text), new(struct{})))
	}
	for _, query := range []string{
		"", "k=short", "k=" + strings.Repeat("k", 300), "k=" + url.QueryEscape(token+"&x"), "x=" + token,
	} {
		v.open("qr?" + query).Want(400)
	}
}
