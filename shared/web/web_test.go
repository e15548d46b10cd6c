package web_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/service"
	"ferry/shared/users"
	"ferry/shared/web"
)

// fileOf returns the address of a file of all pages.
func (v visitor) fileOf(name string) string {
	v.Helper()
	return allOf(v.open("forgot").Text, `(static/[0-9a-f]{12}/)`)[0] + name
}

func looking(l service.Look) apitest.Option { return set(func(s *service.Settings) { s.Look = l }) }

// TestFilesOfPagesAreSmallAndKeptForEver has the limit of the weight of all scripts and styles, after gzip.
func TestFilesOfPagesAreSmallAndKeptForEver(t *testing.T) {
	total, v := 0, visit(t, looking(service.Look{Logo: []byte("\x89PNG..."), LogoType: "image/png"}))
	files, err := os.ReadDir("static")
	expect.NoErr(t, err)
	for _, f := range files {
		at, ext := v.fileOf(f.Name()), filepath.Ext(f.Name())
		kind := map[string]string{".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}[ext]
		a := v.send("GET "+at, "", "Accept-Encoding", "identity").
			Want(200).
			WantHeaders("Content-Type", kind+"; charset=utf-8",
				"X-Content-Type-Options", "nosniff", "Cache-Control", "public, max-age=31536000, immutable", "Vary", "Accept-Encoding",
				"Content-Encoding", "", "Set-Cookie", "")
		expect.Equal(t, at+", which Go's client unpacks", v.send("GET "+at, "").Text, a.Text)
		if ext != ".svg" {
			total += len(v.send("GET "+at, "", "Accept-Encoding", "br, gzip").Text)
		}
	}
	if t.Logf("%d bytes", total); total == 0 || total > 48<<10 {
		t.Errorf("scripts and styles have %d bytes", total)
	}
	for page, want := range map[string]string{"send": "gzip", "forgot": "gzip", "stop?t=x": "", "nothing": ""} {
		v.send("GET "+page, "", "Accept-Encoding", "gzip").WantHeaders("Content-Encoding", want)
	}
	v.send("GET "+v.fileOf("logo"), "").Want(200).WantHeaders("Content-Type", "image/png")
	v.send("GET static/000000000000/style.css", "").Want(200).WantHeaders("Cache-Control", "no-cache") // of a page of another version
	for _, none := range []string{"none.css", "..%2Fweb.go", ""} {
		v.send("GET "+v.fileOf(none), "", "Accept", "*/*").Want(404)
	}
}

func TestTemplatesHaveNoLineOver160Columns(t *testing.T) {
	long := regexp.MustCompile(".{161}")
	files, err := filepath.Glob("templates/*.html")
	expect.NoErr(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		expect.NoErr(t, err)
		expect.Equal(t, "the longer lines of "+name, long.FindAllString(string(text), -1), nil)
	}
}

// TestScriptsAreServedWithoutComments: what looks like a comment within a text or a regular expression stays.
func TestScriptsAreServedWithoutComments(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"// head\n\na();\n", "\n\na();\n"},
		{"a(); // why\nb();", "a();\nb();"},
		{"a();\n  // alone\n  // and more\n  b();\n", "a();\n  b();\n"},
		{"a();\n/**\n * Does it.\n * @param {string} b\n */\nf(b);\n", "a();\nf(b);\n"},
		{"a;\n  /** @type {B} */\n  #b = null;\n", "a;\n  #b = null;\n"},
		{"const f = (/** @type {A} */ a) => /** @type {B} */ (a);", "const f = ( a) => (a);"},
		{"a = `\n// kept\n  /* kept */\n`; // gone\n", "a = `\n// kept\n  /* kept */\n`;\n"},
		{"a = `\\` // kept`;", "a = `\\` // kept`;"},
		{`a = "http://x // kept"; b = 'it\'s // kept';`, `a = "http://x // kept"; b = 'it\'s // kept';`},
		{"a = /[\"'] /; // gone\nb = `// kept`;", "a = /[\"'] /;\nb = `// kept`;"},
		{`a = /^https?:\/\//.test(b) / 2;`, `a = /^https?:\/\//.test(b) / 2;`},
		{"", ""},
	} {
		expect.Equal(t, "what is served of "+c.script, web.WithoutComments(c.script), c.want)
	}
}

// TestScriptsAreLoadedTogether: a script that another one asks for would begin to load only after that.
func TestScriptsAreLoadedTogether(t *testing.T) {
	v := visit(t).login("ann")
	for page, script := range map[string]string{"send": "send.js", "files": "call.js", "requests": "call.js"} {
		loaded := allOf(v.open(page).Text, `"modulepreload" href="static/[0-9a-f]+/([a-z]+\.js)"`)
		needed := []string{script}
		for i := 0; i < len(needed); i++ {
			for _, name := range allOf(v.open(v.fileOf(needed[i])).Text, `(?:from|import\(?) ?"\./([a-z]+\.js)"`) {
				if !slices.Contains(needed, name) {
					needed = append(needed, name)
				}
			}
		}
		needed = needed[1:]
		slices.Sort(needed)
		slices.Sort(loaded)
		expect.Equal(
			t,
			"the scripts that "+page+" loads with "+script,
			strings.Join(loaded, " "),
			strings.Join(needed, " "),
		)
	}
}

func TestPagesLookAsTheOperatorWants(t *testing.T) {
	v := visit(t, looking(service.Look{
		Name:    "Acme <Files>",
		Accent:  "#ffe000",
		Imprint: "https://example.com/imprint?a=1&b=2",
		Privacy: "https://example.com/privacy",
		Home:    "login",
	}))
	v.opens("login", 200, "– Acme &lt;Files&gt;</title>", `content="Acme &lt;Files&gt;"`,
		`href="https://example.com/imprint?a=1&amp;b=2"`, `href="https://example.com/privacy"`)
	expect.Equal(
		t,
		"the colours",
		v.open(v.fileOf("look.css")).Text,
		":root { --accent: #ffe000; --accent-text: #000 }\n",
	)
	v.leads(v.open(""), "login")
	v.opens("stop?t="+v.Data.Ports.Key.Stop("a@example.com"), 200, "from Acme &lt;Files&gt; about", "-Ferry")
	v.post("forgot", "user", "ann").Want(303)
	v.has("the mail", v.Mail(), "the Acme <Files> user ann", "-Ferry")
	other := serve(t)
	other.opens("login", 200, "– Ferry</title>", "-look.css", "-mprint")
	if v.fileOf("") == other.fileOf("") {
		t.Error("another logo or colour has the same address")
	}
	program := other.send("GET ", "", "Accept", "*/*").WantHeaders("Content-Type", "text/plain; charset=utf-8")
	other.shows(program, 200, "This is Ferry", other.Base+"/openapi.json")
}

// TestALanguageIsTheOneThatWasChosen: else it is that of the link, else the browser's.
func TestALanguageIsTheOneThatWasChosen(t *testing.T) {
	v := visit(t)
	for path, c := range map[string]struct{ cookie, want, sets string }{
		"login":         {want: "de"},
		"login?lang=it": {want: "it"},
		"login?lang=it&language=es": {
			cookie: "fr",
			want:   "es",
			sets:   "ferry-lang=es; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax",
		},
		"login?lang=es":            {cookie: "fr", want: "fr"},
		"login?language=xx":        {want: "de"},
		"login?language=%22%3E%3C": {cookie: "xx", want: "de"},
	} {
		other := v.another(desk)
		if c.cookie != "" {
			other.cookies["ferry-lang"] = c.cookie
		}
		a := other.send("GET "+path, "", "Accept-Language", "de-CH, fr;q=0.9")
		a.WantHeaders("Content-Language", c.want, "Set-Cookie", c.sets)
		v.shows(a, 200, `<html lang="`+c.want+`">`)
	}
	v.shows(v.post("password", "k", "x", "new", "short"), 401, `href="?k=x&amp;language=de"`) // also after a wrong form
	v.shows(v.post("stop", "t", "x"), 401, `href="?language=de&amp;t=x"`)
}

// TestPagesForAnybodyShowWhoIsLoggedIn: also where the call that finds that fails.
func TestPagesForAnybodyShowWhoIsLoggedIn(t *testing.T) {
	v := visit(t)
	v.Add("ugo", func(u *users.User) { u.Lang = "it" })
	v.login("ugo")
	for _, page := range []string{"l?k=x", "r?k=x", "forgot", "stop?t=x", "password?k=x", "nothing"} {
		a := v.open(page)
		v.has(page, a.Text, "<bdi>ugo</bdi>", `-class="who" href="login"`, `<html lang="it">`)
		v.Calls.Before("table.GetMany", func() error { return io.ErrUnexpectedEOF })
		v.open(page).Want(a.Code)
		v.Calls.Before("table.GetMany", nil)
	}
	v.opens("l?k=x&lang=fr", 401, `<html lang="fr">`)
	v.has("the log", v.Log.String(), "-login=token")
}

// TestEachPageIsForItselfAlone asks as somebody with a login and as somebody without one.
func TestEachPageIsForItselfAlone(t *testing.T) {
	const allowed = "https://app.example"
	known := visit(t, func(_ *service.Settings, o *local.ServiceOptions) {
		o.Origins = envelope.Origins{allowed}
	}).login("ann")
	for _, v := range []visitor{known, known.another(desk)} {
		for _, request := range web.Views() {
			method, name, _ := strings.Cut(request, " ")
			if method == "POST" {
				for _, from := range [][]string{{
					"Sec-Fetch-Site", "cross-site", "Origin", v.Root,
				}, {"Origin", allowed}} {
					a := v.send(request, "do=everywhere&user=ann&k=x", append(
						from,
						"Content-Type",
						"application/x-www-form-urlencoded",
					)...)
					a.Want(403).WantHeaders("Set-Cookie", "", "Location", "")
				}
				continue
			}
			a := v.open(name)
			if a.Code == 303 {
				if to := a.Header.Get("Location"); !regexp.MustCompile(`^[a-z]+(\?|$)`).MatchString(to) {
					t.Errorf("%s leads to %q", name, to)
				}
				continue
			}
			a.WantHeaders("Cache-Control", "no-store", "Access-Control-Allow-Origin", "", "Content-Security-Policy",
				"default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; connect-src 'self'; img-src 'self' blob:; "+
					"media-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
			if strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Basic") { // the browser would ask
				t.Errorf("%s asks for a password", name)
			}
			if inline := regexp.MustCompile(`<style|<script>|<script [^>]*type="(module|text/javascript)"[^>]*>[^<]| style="| on[a-z]+="|javascript:|="//|="data:`).
				FindString(a.Text); inline != "" {
				t.Errorf("%s has %q, which its policy refuses", name, inline)
			}
		}
	}
	known.open("account").Want(200) // no form of another site has ended the login
}

// TestAnAddressOfTheInterfaceIsNoPage has what a program may ask for by mistake.
func TestAnAddressOfTheInterfaceIsNoPage(t *testing.T) {
	v := visit(t)
	for _, request := range []string{"GET v1", "GET v1/login", "PUT login", "POST static/x/style.css", "POST "} {
		v.send(request, "", "Sec-Fetch-Site", "same-origin").
			Want(404).
			WantHeaders("Content-Type", "application/json; charset=utf-8")
	}
	for _, request := range []string{
		"GET nothing", "GET LOGIN", "GET %2e%2e", "POST nothing", "POST requests", "GET logout",
	} {
		v.send(request, "", "Sec-Fetch-Site", "same-origin").
			Want(404).
			WantHeaders("Content-Type", "text/html; charset=utf-8")
	}
	for path, page := range map[string]string{
		"files/?x=%2F&y": "./../files?x=%2F&y", "l//": "./../../l", "a%20b/": "./../a%20b", "/": "./../missing",
		"a/b/c/": "./../../../missing", "//a.example/": "./../../../a.example",
	} {
		v.leads(v.open(path), page)
		v.send("GET "+path, "", "Accept", "*/*").
			Want(404).
			WantHeaders("Content-Type", "application/json; charset=utf-8")
	}
}

// signing is a store that signs addresses, as that of the cloud does.
type signing struct{ blob.Store }

func (signing) SignGet(_ context.Context, area blob.Area, key string, _ blob.Signed) (string, error) {
	return "https://" + string(area) + ".example.com/" + key + "?signature", blob.CheckKey(key)
}

func TestOnlyPagesThatNeedTheStoreMayReachIt(t *testing.T) {
	v := visit(t)
	v.Data.Ports.Blobs = signing{v.Data.Ports.Blobs}
	v.CountAtOnce()
	v.login("ann")
	_, request := v.request(`{}`)
	link := func(name string) string { return v.link("file="+name, "x") }
	for page, reaches := range map[string]bool{
		"send": true, request: true, link("a.png"): true, link("a.mp4"): true, link("a.txt"): false, link("a.bin"): false,
		"r?k=x": false, "files": false, "requests": false,
	} {
		from := map[bool]string{false: "'self'", true: "'self' https://files.example.com"}[reaches]
		want := "; connect-src " + from + "; img-src " + from + " blob:; media-src " + from + "; form-action"
		v.has("the policy of "+page[:4], v.open(page).Header.Get("Content-Security-Policy"), want)
	}
}
