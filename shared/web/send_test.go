package web_test

import (
	"encoding/xml"
	"mime/multipart"
	"net/url"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/wire"
)

// upload sends a plain form of pairs, as a browser without scripts does. A field @NAME is a file.
func (v visitor) upload(path string, pairs ...string) apitest.Answer {
	v.Helper()
	var b strings.Builder
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, isFile := strings.CutPrefix(pairs[i], "@"); isFile {
			part, _ := w.CreateFormFile("file", name)
			_, _ = part.Write([]byte(pairs[i+1]))
		} else {
			_ = w.WriteField(pairs[i], pairs[i+1])
		}
	}
	_ = w.Close()
	return v.send("POST "+path, b.String(), "Content-Type", w.FormDataContentType(), "Sec-Fetch-Site", "same-origin")
}

func TestTheSendingPageIntroducesItselfToVisitors(t *testing.T) {
	t.Parallel()
	wantTexts(t, visit(t).get("send").Want(200), "Whoever has a link needs no account", `href="login?next=send"`,
		"-type=\"file\"")
	v := visit(t, func(s *api.Settings, _ *local.ServiceOptions) { s.Look.Intro = "For <all> of us" })
	wantTexts(t, v.get("send?failed=401").Want(200), "For &lt;all&gt; of us", "and nothing was sent")
}

func TestTheSendingPageOffersWhatTheServiceCanDo(t *testing.T) {
	t.Parallel()
	v := visit(t).login()
	wantTexts(t, v.get("send").Want(200), "Drop files or folders here", `data-scope="user:ann"`, `action="v1/upload"`,
		"E-mail or text message", `<option value="7d"`, "expires in 30", "-data-room", "-Never", "Mail me", `name="d"`, `name="lang" value="en"`)
	v = visit(t, func(s *api.Settings, _ *local.ServiceOptions) {
		s.NoSMS, s.MaxBody, s.Retention.KeepDays = true, 5_000_000, 0
	})
	v.Add("eve", apitest.Quota(3_000_000), func(u *auth.User) { u.Email = "" })
	v.to("a login", v.post("login", "user", "eve", "password", apitest.Password), "send")
	wantTexts(t, v.get("send").Want(200), `data-room="3000000"`, "You have 3 MB left", "-E-mail or text message",
		`-name="c"`,
		"at most 5 MB", "never expires", "-Mail me")
	v.As("eve").Upload("file=a.txt&expires=1d", "x")
	wantTexts(t, v.get("files?id=1").Want(200), `<option value="">Never</option>`)
	v.Add("max", func(u *auth.User) { u.KeepDays = 7 })
	v.to("a login", v.post("login", "user", "max", "password", apitest.Password), "send")
	wantTexts(t, v.get("send").Want(200), "expires in 7", `-value="14d"`)
}

func TestAPlainFormSends(t *testing.T) {
	t.Parallel()
	v := visit(t).login()
	a := v.upload("v1/upload", "m", "bob@example.com, carla@example.com", "c", "+39 347 123 4567", "i", "Hello\r\nall", "expires", "7d",
		"downloads", "5", "password", "open sesame", "d", "", "notify", "1", "@a<b>.txt", "its words")
	v.to("a form", a, "../send?sent=1")
	page := v.get("send?sent=1").Want(200)
	wantTexts(t, page, "Sent to 3 people", "a&lt;b&gt;.txt", "393471234567", "@example.com", "Expires <time", "in 7 days",
		"5 downloads for each link", "With a password", "qr?lang=en&amp;k=", "-open sesame", "-its words")
	got := apitest.Read[struct {
		Notify bool
		Links  []wire.Link
	}](v.As("ann").Ask("GET /files/1", "").Want(200))
	apitest.Equal(t, "the receipt and the links", []any{got.Notify, len(got.Links)}, []any{true, 4})
	v.to("several files", v.upload("v1/upload", "@b.txt", "1", "@c.txt", "2"), "../send?sent=2&sent=3")
	wantTexts(t, v.get("send?sent=2&sent=3").Want(200), "Your links are ready", "b.txt", "c.txt", "No limit",
		"No password")
	v.AddUser("bob", apitest.Password)
	v.to("another user's files", v.upload("v1/upload", "d", "Bob", "@d.txt", "1"), "../send?d=bob&sent=1")
	wantTexts(t, v.get("send?d=bob&sent=1").Want(200), "d.txt", "in the files of <bdi>bob</bdi>", "-Open your files")
	v.get("send?sent=99").Want(404)
	wantTexts(t, v.get("send?sent=1&language=de").Want(200), "qr?lang=de&amp;k=", `v1/download/file?lang=de&amp;k=`)
	v.get("send?sent=..%2Fme").Want(400)
}

func TestWhatIsWrongWithAPlainFormStandsBesideItsField(t *testing.T) {
	t.Parallel()
	v := visit(t).login()
	for _, k := range []struct {
		fields []string
		query  string
		says   string
	}{
		{[]string{"m", "bob", "@a", "1"}, "failed=400&parameter=m", `id="m-error" role="alert">An e-mail address among these`},
		{[]string{"c", "12", "@a", "1"}, "failed=400&parameter=c", `id="c-error"`},
		{[]string{"i", strings.Repeat("x", 501), "@a", "1"}, "failed=400&parameter=i", `id="i-error"`},
		{[]string{"i", strings.Repeat("x", 20_000), "@a", "1"}, "failed=400&parameter=i", `id="i-error"`},
		{[]string{"m", strings.Repeat("bob@example.com,", 3) + strings.Join(manyAddresses(21), ";"), "@a", "1"},
			"failed=400&parameter=c%2C+m", "too many recipients"},
		{[]string{"d", "nobody", "@a", "1"}, "failed=400&parameter=d", `id="d-error"`},
		{[]string{"downloads", "0", "@a", "1"}, "failed=400&parameter=downloads", `id="downloads-error"`},
		{[]string{"password", " x", "@a", "1"}, "failed=400&parameter=password", `id="lock-error"`},
		{[]string{"expires", "x", "@a", "1"}, "failed=400&parameter=expires", "<p>The form was not complete"},
		{[]string{"@a", "1", "m", "bob@example.com"}, "failed=400&parameter=m", `id="m-error"`},
		{[]string{"m", "bob@example.com"}, "failed=400", "The form was not complete"},
	} {
		a := v.upload("v1/upload", k.fields...)
		v.to(k.query, a, "../send?"+k.query)
		wantTexts(t, v.get("send?"+k.query).Want(200), k.says)
	}
	wantTexts(t, v.get("send?failed=400&parameter=c%2C+m"), "-<p>These are too many")
	apitest.Equal(t, "files that were stored", len(v.Files()), 0)
	wantTexts(t, v.get("send?failed=<b>&parameter=<i>").Want(200), "-<i>", "-class=\"error\"")
	wantTexts(t, v.get("send?failed=413&parameter=%3Ci%3E").Want(200), "not enough room")
	v.cookies = map[string]string{}
	a := v.upload("v1/upload", "@a", "1")
	v.to("without a login", a, "../send?failed=401")
	apitest.Equal(t, "what makes a browser ask for a password", a.Header.Get("WWW-Authenticate"), "")
}

func manyAddresses(n int) (all []string) {
	for i := range n {
		all = append(all, "a"+strings.Repeat("b", i)+"@example.com")
	}
	return all
}

func TestOnlyAPagesFormHasParametersAsFields(t *testing.T) {
	t.Parallel()
	v := visit(t).login()
	ann := v.As("ann")
	var b strings.Builder
	w := multipart.NewWriter(&b)
	_ = w.WriteField("d", "nobody")
	_, _ = w.CreateFormFile("file", "a")
	_ = w.Close()
	kind, html := w.FormDataContentType(), "text/html"
	ann.Ask("POST /upload", b.String(), "Content-Type", kind, "Accept", html).Want(200)
	v.Send("POST /upload", b.String(), "Content-Type", kind, "Accept", html).Want(401)
	cookie := "ferry=" + v.cookies["ferry"]
	for _, site := range []string{"cross-site", "same-site"} {
		v.Send("POST /upload", b.String(), "Content-Type", kind, "Accept", html, "Cookie", cookie, "Sec-Fetch-Site",
			site).Want(403)
	}
	v.Send("POST /upload", b.String(), "Content-Type", kind, "Cookie", cookie, "Sec-Fetch-Site", "same-origin").Want(200)
}

func TestAQRCodeIsOfALinkAlone(t *testing.T) {
	t.Parallel()
	v := visit(t)
	token := strings.Repeat("k", 43)
	for _, name := range []string{"k", "z", "r"} {
		a := v.get("qr?lang=de&" + name + "=" + token).Want(200)
		a.WantHeaders("Content-Type", "image/svg+xml", "Cache-Control", "no-store", "Content-Security-Policy",
			"default-src 'none'; frame-ancestors 'none'")
		apitest.Must(t, xml.Unmarshal([]byte(a.Text), new(struct{})))
	}
	for _, query := range []string{"", "k=", "k=short", "k=" + strings.Repeat("k", 300),
		"k=" + url.QueryEscape(token+"&x"), "x=" + token} {
		v.get("qr?" + query).Want(400)
	}
}
