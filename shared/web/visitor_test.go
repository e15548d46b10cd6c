package web_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/service"
	"ferry/shared/wire"
)

const (
	desk  = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36"
	phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Version/17.0 Mobile/15E148 Safari/604.1"
)

// visitor is a browser with its cookies, on the pages of a service with the users ann and bob. It also calls the
// interface as ann.
type visitor struct {
	apitest.Caller
	cookies map[string]string
	agent   string
}

// visit starts the service of a test that runs beside others.
func visit(t *testing.T, options ...apitest.Option) visitor {
	t.Helper()
	t.Parallel()
	return serve(t, options...)
}

func serve(t *testing.T, options ...apitest.Option) visitor {
	t.Helper()
	ann := apitest.Begin(t, options...)
	ann.CountAtOnce()
	return visitor{ann, map[string]string{}, desk}
}

// set returns an option that changes the settings.
func set(change func(*service.Settings)) apitest.Option {
	return func(s *service.Settings, _ *local.ServiceOptions) { change(s) }
}

// another returns another browser.
func (v visitor) another(agent string) visitor { return visitor{v.Caller, map[string]string{}, agent} }

// login logs a user in.
func (v visitor) login(user string) visitor {
	v.Helper()
	v.leads(v.post("login", "user", user, "password", apitest.Password), "send")
	return v
}

// send sends a request to a page. Headers are pairs.
func (v visitor) send(request, body string, headers ...string) apitest.Answer {
	v.Helper()
	method, page, _ := strings.Cut(request, " ")
	var all []string
	for name, value := range v.cookies {
		all = append(all, name+"="+value)
	}
	own := []string{
		"Accept", "text/html,*/*;q=0.8", "Sec-Fetch-Mode", "navigate", "Accept-Language", "en", "User-Agent", v.agent,
		"Cookie", strings.Join(all, "; "),
	}
	a := v.Send(method+" "+v.Root+"/"+page, body, append(own, headers...)...)
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if v.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	return a
}

func (v visitor) open(page string) apitest.Answer { v.Helper(); return v.send("GET "+page, "") }

// post sends a form of pairs.
func (v visitor) post(page string, pairs ...string) apitest.Answer {
	v.Helper()
	form := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		form.Set(pair[0], pair[1])
	}
	return v.send(
		"POST "+page,
		form.Encode(),
		"Content-Type",
		"application/x-www-form-urlencoded",
		"Sec-Fetch-Site",
		"same-origin",
	)
}

// upload sends a form of pairs as a browser without scripts does. A field @NAME is a file.
func (v visitor) upload(page string, pairs ...string) apitest.Answer {
	v.Helper()
	body, kind := apitest.Form(pairs...)
	return v.send("POST "+page, body, "Content-Type", kind, "Sec-Fetch-Site", "same-origin")
}

// opens opens a page and checks it as shows does.
func (v visitor) opens(page string, status int, texts ...string) apitest.Answer {
	v.Helper()
	return v.shows(v.open(page), status, texts...)
}

// shows checks a page's status and texts, without the characters that only keep words together or apart.
func (v visitor) shows(a apitest.Answer, status int, texts ...string) apitest.Answer {
	v.Helper()
	v.has("the page", strings.NewReplacer("\u00a0", " ", "\u2068", "", "\u2069", "").
		Replace(a.Want(status).Text), texts...)
	return a
}

// has checks that something has texts, and lacks those that begin with "-".
func (v visitor) has(what, all string, texts ...string) {
	v.Helper()
	for _, text := range texts {
		unwanted, lacks := strings.CutPrefix(text, "-")
		if strings.Contains(all, unwanted) == lacks {
			v.Errorf("%q in %s:\n%s", text, what, all)
		}
	}
}

// leads checks where an answer leads.
func (v visitor) leads(a apitest.Answer, page string) {
	v.Helper()
	a.Want(303).WantHeaders("Location", page)
}

// link stores a file, and returns the page of its link.
func (v visitor) link(query, content string, headers ...string) string {
	v.Helper()
	return pageOf(v.Upload(query, content, headers...).LinkURL)
}

// request makes a request of ann's, and returns it with its page.
func (v visitor) request(json string) (wire.Request, string) {
	v.Helper()
	made := apitest.Read[wire.Request](v.Ask("POST /requests", json).Want(201))
	return made, pageOf(made.LinkURL)
}

// pageOf returns the page to which a link of the interface leads a browser.
func pageOf(link string) string {
	before, query, _ := strings.Cut(link, "?")
	if strings.HasSuffix(before, "/requests/in") {
		return "r?" + query
	}
	return "l?" + query
}

// valueOf returns what an address has in its query.
func valueOf(address, name string) string {
	u, _ := url.Parse(address)
	return u.Query().Get(name)
}

// addresses returns what the attributes of a page lead to, if that has a word.
func addresses(a apitest.Answer, word string) (all []string) {
	for _, at := range allOf(a.Text, `(?:href|src|action)="([^"]*)"`) {
		if at = html.UnescapeString(at); strings.Contains(at, word) {
			all = append(all, at)
		}
	}
	return all
}

// allOf returns what the group of a pattern matches in a text.
func allOf(text, pattern string) (all []string) {
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}
