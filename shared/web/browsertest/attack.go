package browsertest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
)

// Kinds maps extensions to the media types of files that browsers run, and of some that they might
// mistake for those.
var Kinds = map[string]string{
	".html":  "text/html",
	".xhtml": "application/xhtml+xml",
	".svg":   "image/svg+xml",
	".xml":   "text/xml",
	".pdf":   "application/pdf",
	".txt":   "text/plain",
	".png":   "image/png",
}

// EvilSite serves pages by path, with the media types of their extensions. host is a neighbour of
// the service, or another site. heard receives the Referer of each visit to /heard.
func EvilSite(
	t testing.TB,
	host string,
	pages map[string]string,
) (address string, heard chan string) {
	t.Helper()
	heard = make(chan string, 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", cmp.Or(Kinds[path.Ext(r.URL.Path)], "text/html"))
		if r.URL.Path == "/heard" {
			heard <- r.Header.Get("Referer")
		}
		fmt.Fprint(w, pages[r.URL.Path])
	}))
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", host, 1), heard
}

// Forgery is a request that one of the service's pages makes: a form or, from its script, a call
// with a JSON body.
type Forgery struct {
	Request, Kind string
	Call          bool
	Fields        [][2]string
}

// Forms returns the requests that the forms on some pages send. fill holds values for their empty fields.
func (b *Tab) Forms(fill map[string]string, pages ...string) []Forgery {
	b.Helper()
	return get[[]Forgery](b, `(async (fill, pages, all = {}) => {
		for (const page of pages) {
			const text = await (await fetch(page, {headers: {Accept: "text/html"}})).text();
			for (const form of new DOMParser().parseFromString(text, "text/html").querySelectorAll("form[method=post]")) {
				const {call} = form.dataset, Request = call ?? "POST " + (form.getAttribute("action") ?? page);
				const Fields = [...form.elements].filter(e => e.name).map(e => [e.name, e.value || fill[e.name] || ""]);
				all[Request + Fields] = {Request, Fields, Call: !!call, Kind: call ? "application/json" : form.enctype};
			}
		}
		return Object.values(all);
	})(`+Quoted(fill)+","+Quoted(pages)+")")
}

// Forge makes the open page send a request to a service.
func (b *Tab) Forge(root string, f Forgery) {
	b.Helper()
	b.Is("(" + forge + ")(" + Quoted(root) + "," + Quoted(f) + ").then(() => true)")
}

const forge = `async function(root, {Request, Kind, Call, Fields}) {
	const [method, path] = Request.split(" "), action = root + "/" + path;
	if (Call) {
		const body = method === "DELETE" ? undefined : JSON.stringify(Object.fromEntries(Fields));
		const mode = Kind === "text/plain" ? "no-cors" : "cors", headers = {"Content-Type": Kind};
		return void fetch(action, {method, body, mode, headers, credentials: "include"});
	}
	const form = Object.assign(document.createElement("form"), {method, action, enctype: Kind || "text/plain"});
	for (const [name, value] of Fields ?? []) {
		const e = Object.assign(document.createElement("input"), {name}), d = new DataTransfer();
		d.items.add(new File(["evil"], "evil.txt"));
		Object.assign(e, name === "file" ? {type: "file", files: d.files} : {value});
		form.append(e);
	}
	document.body.append(form);
	HTMLFormElement.prototype.submit.call(form);
}`

// Received is a forged request that the service has answered.
type Received struct {
	Request string
	Status  int
	Cookie  bool // it carried a login
}

// Receive puts a handler in front of a service's, and returns the requests by which other sites ask
// the service to change something. They are answered with 204, so that the other site's page stays
// open. Preflight requests are always allowed here: the service itself must refuse the call.
func Receive(t testing.TB, root string, before *http.Handler) <-chan Received {
	got, next := make(chan Received, 100), *before
	*before = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin == "" || origin == root || r.Method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		answer, h := httptest.NewRecorder(), w.Header()
		next.ServeHTTP(answer, r)
		if answer.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s lets other origins use a login", r.Method, r.URL.Path)
		}
		if r.Method != http.MethodOptions {
			_, err := r.Cookie("ferry")
			got <- Received{r.Method + " " + r.URL.RequestURI()[1:], answer.Code, err == nil}
		}
		h["Set-Cookie"], h["Access-Control-Allow-Origin"] = answer.Header()["Set-Cookie"], []string{origin}
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Access-Control-Allow-Methods", "PATCH, DELETE, PUT")
		h.Set("Access-Control-Allow-Headers", "Content-Type")
		w.WriteHeader(http.StatusNoContent)
	})
	return got
}

// Kept returns what scripts can read in the page's title and the browser's storage.
func (b *Tab) Kept() string {
	b.Helper()
	return b.Text(`(async () => {
	const all = [document.title, {...localStorage}, {...sessionStorage}, document.cookie];
	const done = asked => new Promise(then => { asked.onsuccess = () => then(asked.result) });
	for (const {name} of await indexedDB.databases()) {
		const open = await done(indexedDB.open(name));
		for (const store of open.objectStoreNames) {
			all.push(await done(open.transaction(store).objectStore(store).getAll()));
		}
		open.close();
	}
	return JSON.stringify(all);
})()`)
}
