package browser_test

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/service"
	"ferry/shared/web/browsertest"
)

// wantViews checks that each page that takes a method is among requests.
func wantViews(t testing.TB, method string, requests []string) {
	t.Helper()
	text, err := os.ReadFile("../web.go")
	expect.NoErr(t, err)
	for _, view := range regexp.MustCompile(`"`+method+` ([a-z]+)"`).FindAllStringSubmatch(string(text), -1) {
		if !slices.ContainsFunc(requests, func(r string) bool { return strings.HasPrefix(r+"?", view[1]+"?") }) {
			t.Errorf("%s is not tried", view[0])
		}
	}
}

// stock is what alice has: addresses of all pages that show it, and the queries of some links.
type stock struct {
	pages                                           []string
	file, archive, closed, open, locked, stop, code string
}

// seed gives alice files, links, requests and tokens, all with a name and a text.
func seed(s *apitest.Server, name, text string) (has stock) {
	s.Helper()
	queryOf := func(link string) string { // as pages write it
		u, _ := url.Parse(link)
		return u.Query().Encode()
	}
	alice, n, i := s.As("alice"), url.QueryEscape(name), url.QueryEscape(text)
	ask := func(request string, body map[string]any) (made struct{ ID, LinkURL string }) {
		a := alice.Ask(request, browsertest.Quoted(body)).Want(201)
		made.ID, made.LinkURL = regexp.MustCompile(`"id":"([^"]+)`).FindStringSubmatch(a.Text)[1], a.LinkURL
		return made
	}
	alice.Upload("file="+n+"&m=bob@example.com&i="+i, "x")
	inMail := linksIn(s.Mail())
	has.file, has.stop = queryOf(inMail[0]), queryOf(inMail[len(inMail)-1])
	limited := queryOf(alice.Upload("file="+n+"&downloads=3", "x", "Ferry-Link-Password", password).LinkURL)
	has.closed = queryOf(bundle(s, n+".zip&downloads=2", "c", "c"))
	has.archive = queryOf(bundle(s, n+".zip&m=bob@example.com&i="+i, text+".png", picture, text+".html", "x",
		"javascript:attacked=1", "x", strings.Repeat("long", 60), "x"))
	alice.Ask(fmt.Sprint("DELETE /files/", alice.Upload("file="+n, "x").ID), "").Want(200)
	ask("POST /uploads", map[string]any{"name": name, "length": 5})
	ask("POST /tokens", map[string]any{"name": text, "scope": "all"})
	request := ask("POST /requests", map[string]any{"title": text, "message": text, "files": 9})
	s.Send("POST "+request.LinkURL+"&file="+n+"&by="+i, "x").Want(200)
	has.locked = queryOf(ask("POST /requests", map[string]any{"title": text, "password": password}).LinkURL)
	change := queryOf(s.Send("GET /auth/forget?u=alice", "").Want(200).LinkURL)
	has.open, has.code = queryOf(request.LinkURL), regexp.MustCompile(`(?m)^\d{8}$`).FindString(s.Mail())
	has.pages = strings.Fields(strings.NewReplacer("ID", request.ID, "FILE", has.file, "LIMITED", limited,
		"CLOSED", has.closed, "BUNDLE", has.archive, "OPEN", has.open, "LOCKED", has.locked,
		"STOP", has.stop, "CHANGE", change+"&u="+i).Replace(`
		files files?id=1 files?id=2 files?id=4 files?id=7 files?area=backup files?area=backup&id=5 files?deleted=5 account
		requests requests?new=1 requests?id=ID requests?made=ID send send?sent=1&sent=4 inbox login?changed=1 forgot nothing
		l?FILE l?LIMITED l?CLOSED l?BUNDLE l?BUNDLE&view=list l?BUNDLE&picture=1 r?OPEN r?LOCKED stop?STOP password?CHANGE`))
	return has
}

// embed is a script that takes addresses in as whatever an element can be.
const embed = `all => Promise.all(all.flatMap(src => ["script", "img", "iframe", "object", "embed"].map(tag =>
	new Promise(done => {
	document.body.append(Object.assign(document.createElement(tag), {onload: done, onerror: done, src, data: src}));
	setTimeout(done, 1000);
})))).then(() => true)`

// TestUploadedPagesCannotReachTheService uploads what browsers run, alone and in a bundle. However a visitor or a
// neighbour's page opens it, it is saved, or shown without running.
func TestUploadedPagesCannotReachTheService(t *testing.T) {
	s, b := begin(t, browsertest.Desk())
	s.InProcess("the store has another origin")
	b.Expect("Refused to execute script")
	pages := map[string]string{"/": `<button onclick="other = window.open('about:blank')">open</button>`}
	evil, heard := browsertest.EvilSite(t, "127.0.0.1", pages)
	code := `window.name = "attacked"; new Image().src = "` + evil + `/heard"; localStorage.attacked = 1`
	script, in := "<script>"+code+"</script>", ` xmlns="http://www.w3.org/1999/xhtml"`
	hostile := map[string]string{
		"a.html": "<!doctype html>" + script, "a.txt": script, "a.png": "<!doctype html>" + script,
		"a.xhtml": "<html" + in + "><body>" + script + "</body></html>",
		"a.svg":   `<svg xmlns="http://www.w3.org/2000/svg">` + script + "</svg>",
		"a.xml":   `<?xml version="1.0"?><x:html xmlns:x` + in[6:] + "><x:script>" + code + "</x:script></x:html>",
		"a.pdf":   "%PDF-1.4\n1 0 obj<</OpenAction<</S/JavaScript/JS(" + code + ")>>>>endobj\ntrailer<</Root 1 0 R>>",
	}
	for _, name := range []string{"a.html", "a.xhtml", "a.svg", "a.xml"} { // a site that serves them is attacked
		pages["/"+name] = hostile[name]
		b.Visit(evil + "/" + name)
		expect.Equal(t, "what "+name+" does", b.Text("window.name + localStorage.attacked"), "attacked1")
		<-heard
		b.Is("window.name = '', localStorage.clear(), true")
	}
	b.Login("alice", password)
	var entries, previews []string
	for name, content := range hostile {
		entries = append(entries, name, content)
	}
	archive, ways := bundle(s, "evil.zip", entries...), map[string]string{} // the names of what they lead to
	for name, content := range hostile {
		links := []string{archive + "&entry=" + url.QueryEscape(name)}
		for _, kind := range slices.Compact([]string{"text/html", browsertest.Kinds[path.Ext(name)]}) {
			a := s.As("alice").Ask("POST /upload?file="+name, content, "Content-Type", kind).Want(200)
			links = append(links, a.File().LinkURL)
		}
		b.Visit(links[len(links)-1]) // with a preview
		b.WaitFor("a.primary")
		for _, link := range links {
			ways[link+"&download=1"], ways[link+"&preview"] = name, name
			previews = append(previews, link+"&preview")
		}
	}
	b.Visit(archive)
	b.Visit(evil + "/")
	b.Click("button") // opens a window
	b.Is("(" + embed + ")(" + browsertest.Quoted(previews) + ")")
	folder := b.Downloads()
	isSaved := func(address string) bool {
		defer os.Remove(filepath.Join(folder, ways[address]))
		return string(b.Saved(folder, ways[address])) == hostile[ways[address]]
	}
	for _, address := range previews {
		if b.Is("other.location = " + browsertest.Quoted(address) + ", true"); !isSaved(address) {
			t.Errorf("another page opens %s, and something else is saved", address)
		}
	}
	for address := range ways {
		if !b.Saves(address) || !isSaved(address) {
			t.Errorf("%s is shown", address)
		}
	}
	if !b.Is(`[other, ...Array.from(frames)].every(w => w.location.href === "about:blank" && !w.name) && !window.name`) {
		t.Error("a page of another site has shown an uploaded page")
	}
	b.Is(`location = "` + b.Root + `login?changed=1", true`)
	b.WaitFor("#password") // and not for the load event, which Chromium may hold back behind the other window
	if b.Text("window.name + document.cookie") != "" || b.Is("localStorage.length > 0") || len(heard) > 0 {
		t.Error("an uploaded page ran")
	}
}

// TestNoOtherSiteCanUseALogin has pages of a neighbour, of another site, and of an origin that CORS allows send
// what each form and each button of the service's pages sends. The service gets it and refuses it.
func TestNoOtherSiteCanUseALogin(t *testing.T) {
	t.Parallel()
	browsertest.Need(t)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		for _, allowed := range map[bool][]bool{false: {true}, true: {true, false}}[browsertest.All()] {
			t.Run(fmt.Sprint(host, ", allowed by CORS: ", allowed), func(t *testing.T) {
				evil, _ := browsertest.EvilSite(t, host, nil)
				s, b := begin(t, browsertest.Desk(), func(_ *service.Settings, o *local.ServiceOptions) {
					if allowed {
						o.Origins = envelope.Origins{evil}
					}
				})
				b.Login("alice", password)
				b.Expect("CORS", "net::ERR_FAILED")
				has := seed(s, "name", "text")
				all := forgeries(t, b, has)
				b.Visit("account")
				got, cookies, before := browsertest.Receive(t, s.Root, &s.HTTP.Config.Handler), b.Cookies(), s.Items()
				send := func(f browsertest.Forgery, want int) {
					t.Helper()
					b.Forge(s.Root, f)
					select {
					case r := <-got:
						expect.Equal(t, "the answer", r, browsertest.Received{
							Request: f.Request,
							Status:  want,
							Cookie:  host == "127.0.0.1",
						})
					case <-time.After(10 * time.Minute):
						t.Fatalf("the service did not get %+v", f)
					}
				}
				b.Visit(evil + "/")
				var later []browsertest.Forgery // for which a token is enough
				for _, f := range all {
					isGuest, want := strings.HasPrefix(f.Request, "POST v1/requests/in"), 403
					if allowed && strings.Contains(f.Request, " v1/") && (isGuest || host == "localhost") {
						want = 401 // CORS lets it through, and it has no login
					}
					if allowed && isGuest && !strings.Contains(f.Request, has.locked) {
						later = append(later, browsertest.Forgery{
							Request: f.Request,
							Kind:    f.Kind,
							Fields:  f.Fields[1:],
						})
						continue
					}
					send(f, want)
				}
				if after := s.Items(); !maps.Equal(before, after) {
					t.Errorf("the service has %v, and had %v", after, before)
				}
				for _, f := range append(
					later,
					browsertest.Forgery{Request: "POST v1/notifications/stop?" + has.stop},
				) {
					send(f, 303)
				}
				if maps.Equal(before, s.Items()) {
					t.Error("a mail program cannot stop mails")
				}
				for _, path := range []string{"/v1/me", "/v1/download/list", "/account"} {
					at := browsertest.Quoted(s.Root + path)
					if got := b.Text("fetch(" + at + `, {credentials: "include"}).then(r => r.text()).catch(() => "")`); got != "" {
						t.Errorf("another site reads %s: %s", path, got)
					}
				}
				b.Visit("account")
				b.WaitFor("form[action=logout]")
				expect.Equal(t, "the cookies", b.Cookies(), cookies)
			})
		}
	}
}

// forgeries returns what all pages send for alice, who has opened a request that is locked for others.
func forgeries(t *testing.T, b *browsertest.Tab, has stock) (all []browsertest.Forgery) {
	b.Helper()
	fill := map[string]string{
		"old": password, "new": another, "user": "alice", "password": password, "name": "evil", "title": "evil",
		"code": has.code, "file": "evil",
	}
	all = b.Forms(fill, has.pages...)
	open := `fetch("r", {method: "POST", body: new URLSearchParams("` + has.locked + "&password=" + password + `")})`
	b.Is(open + ".then(r => r.ok)")
	all = append(all, b.Forms(fill, "r?"+has.locked)...)
	var forms []string
	for _, f := range all {
		forms = append(forms, strings.TrimPrefix(f.Request, "POST "))
	}
	wantViews(t, "POST", forms)
	fields := [][2]string{{"name", "evil"}, {"old", password}, {"new", another}}
	calls := "POST v1/tokens|DELETE v1/tokens|POST v1/me/password|POST v1/uploads|PUT v1/upload/a"
	for call := range strings.SplitSeq(calls, "|") {
		all = append(all, browsertest.Forgery{Request: call, Kind: "application/json", Call: true, Fields: fields})
	}
	for _, f := range all {
		if f.Kind = "text/plain"; f.Call && strings.HasPrefix(f.Request, "POST") { // which needs no leave of CORS
			all = append(all, f)
		}
	}
	return all
}

// TestNoPageCanBeFramed puts each page into a frame of a neighbour, with the login, and of another site. What is no
// page is saved instead.
func TestNoPageCanBeFramed(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "localhost"} {
		t.Run(host, func(t *testing.T) {
			s, b := begin(t, browsertest.Desk())
			s.InProcess("it has an inbox")
			b.Login("alice", password)
			has := seed(s, "name", "text")
			messages, err := s.Service.Inbox.List(s.Context(), 2)
			expect.NoErr(t, err)
			at := "v1/download/file?"
			pages := append(has.pages, "", "qr?"+has.file, at+has.file, at+has.archive, "v1/requests/in?"+has.open,
				"inbox?mail="+messages[1].ID)
			wantViews(t, "GET", pages)
			entry := at + has.archive + "&entry=text.html"
			files := []string{at + has.file + "&download=1", at + has.file + "&preview", entry, entry + "&preview"}
			evil, _ := browsertest.EvilSite(t, host, nil)
			b.Expect("frame-ancestors")
			b.Visit(evil + "/")
			b.Is(browsertest.Quoted(append(files, pages...)) + `.forEach(at => document.body.append(Object.assign(
				document.createElement("iframe"), {src: "` + s.Root + `/" + at}))), true`)
			if !expect.Eventually(func() bool { return b.Hears("frame-ancestors") == len(pages) }) {
				t.Errorf("%d of %d pages are refused a frame: %s", b.Hears("frame-ancestors"), len(pages), pages)
			}
			if !b.Is(`Array.from(frames).slice(0, 4).every(f => f.location.href === "about:blank")`) {
				t.Error("a file is shown in a frame")
			}
			if with := strings.Contains(s.Log.String(), "path=/account status=200"); with != (host == "127.0.0.1") {
				t.Errorf("the frames have the login: %v", with)
			}
		})
	}
}

// TestNoTokenLeavesTheService visits pages that have tokens, and goes from them to another site. It looks at what
// that site gets, at titles, at what the browser stores, after interrupted uploads too, and at the log.
func TestNoTokenLeavesTheService(t *testing.T) {
	other, heard := browsertest.EvilSite(t, "127.0.0.1", nil)
	s, b := begin(t, browsertest.Desk(), func(set *service.Settings, _ *local.ServiceOptions) {
		set.Look.Imprint = other + "/heard"
	})
	b.Login("alice", password)
	has := seed(s, "name", "text")
	claim := s.Send("GET /download/file?"+has.closed+"&download=1", "").Want(302).Header.Get("Location")
	claim = "l?" + claim[strings.IndexByte(claim, '?')+1:]
	secrets := []string{s.As("alice").Bearer, "open sesame"}
	check := func(page string) {
		t.Helper()
		for _, secret := range append(secrets, b.Cookies()...) {
			if has := b.Kept(); strings.Contains(has, secret) || strings.Contains(s.Log.String(), secret) {
				t.Errorf("%s: the browser keeps, or the log has, %s: %s", page, secret, has)
			}
		}
	}
	for _, page := range append(has.pages, claim) {
		if !regexp.MustCompile(`[?&](k|sent|made|t|id)=`).MatchString(page) {
			continue
		}
		q, _ := url.ParseQuery(page[strings.IndexByte(page, '?')+1:])
		for _, name := range []string{"k", "t", "claim"} {
			if q.Has(name) {
				secrets = append(secrets, q.Get(name))
			}
		}
		b.Visit(page)
		check(page)
		b.Press(`a[href^="` + other + `"]`)
		if referer := <-heard; referer != "" {
			t.Errorf("%s: another site gets the Referer %s", page, referer)
		}
	}
	if s.InStack() {
		return
	}
	browsertest.Narrow(&s.HTTP.Config.Handler, 1_000_000)
	for _, page := range []string{"send", "r?" + has.open} {
		b.Visit(page)
		b.Pick(noise(t, "unfinished.bin", 8<<20))
		if page == "send" {
			b.Click("#stage details.fold summary")
			b.Fill("#lock", "open sesame")
		}
		b.Send()
		b.WaitFor("#stage progress")
		b.Visit("login?changed=1")
		if has := b.Kept(); strings.Count(has, "unfinished.bin") == 0 {
			t.Errorf("the browser does not know the upload any more: %s", has)
		}
		check(page)
	}
}

// hostile is a text that becomes markup and runs wherever it is no text. A file's name can have no slash.
const (
	hostileName = `'"><img src=x onerror=attacked=1>{{1}}&lt;.txt`
	hostile     = hostileName + `</title></textarea><script>attacked=1</script>`
)

func TestHostileTextsAreShownAsTexts(t *testing.T) {
	s, b := begin(t, browsertest.Phone())
	s.InProcess("it has an inbox")
	has, typed := seed(s, hostileName, hostile), url.QueryEscape(hostile)
	for _, name := range []string{
		"javascript:attacked=1", "\u202egnp.exe", strings.Repeat("long", 60), "\u05e9\u05dc" + hostileName,
	} {
		s.As("alice").Upload("file="+url.QueryEscape(name), "x")
	}
	browsertest.Narrow(&s.HTTP.Config.Handler, 1_000_000)
	pages := append(has.pages, typed, "l?"+has.archive+"&view=list&q="+typed)
	for page := range strings.FieldsSeq(`files?search= send?sent=1&d= send?failed=400&parameter= l?k= r?k= stop?t=
		forgot?user= login?changed=1&user= login?changed=1&next= login?changed=1&language=`) {
		pages = append(pages, page+typed)
	}
	b.Login("alice", password)
	harmless := func(where string) {
		t.Helper()
		b.Fits(where)
		if b.Is(`!!(window.attacked || document.querySelector("main script, [onerror], [href^='javascript:' i]"))`) {
			t.Errorf("%s: a text became markup", where)
		}
	}
	for _, page := range pages {
		b.Visit(page)
		b.WaitFor("main h1")
		harmless(page)
	}
	file, refused := noise(t, hostileName, 8<<20), noise(t, `\`+hostileName, 10)
	for _, page := range []string{"send", "r?" + has.open} {
		b.Visit(page)
		b.Pick(file, refused)
		if page == "send" {
			b.Click("#stage details.fold summary")
			b.Click("input[name=area][value=other]")
			b.Fill("#user", hostile)
		}
		harmless(page + ", chosen")
		b.Send()
		b.WaitFor("#stage .alert:not([hidden])")
		harmless(page + ", refused")
		b.Visit(page)
		b.Pick(file)
		b.Send()
		b.WaitFor("#stage progress")
		harmless(page + ", on its way")
		b.Visit("login?changed=1")
		b.Visit(page)
		b.WaitFor("#stage progress")
		harmless(page + ", unfinished")
		b.Confirm("#stage details.reveal:has([data-do=discard])")
		b.WaitFor("#start .drop")
	}
}
