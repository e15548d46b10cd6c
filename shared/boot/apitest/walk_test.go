package apitest_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/service"
)

// walk takes the journey. The fields that are functions may be replaced before it begins.
type walk struct {
	*apitest.Server
	send     func(*http.Request) *http.Response
	answered func(request, answer, text string) // nil does nothing
	learned  func(name, value string)           // nil does nothing
	pass     func(time.Duration)
	deliver  func()
	sweep    func()
	spread   func()
	crowd    func() // adds files of dora; nil adds none

	step step
	vars map[string]string
	read map[string]bool // messages of the inbox
}

// public is the address in links.
func public(s *service.Settings, _ *local.ServiceOptions) { s.PublicURL = "https://ferry.example/v1" }

func begin(s *apitest.Server) *walk {
	nothing := func() {}
	return &walk{
		Server: s, send: s.Do, pass: s.Clock.Advance, deliver: func() { s.Deliver() }, sweep: nothing, spread: nothing,
		vars: map[string]string{}, read: map[string]bool{},
	}
}

// failer is the part of testing.TB that no field of a server hides.
type failer interface {
	Helper()
	Fatal(...any)
}

func check(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run takes all steps, with whatever surrounds each.
func (w *walk) run(around func(take func())) {
	for _, s := range w.journey() {
		w.step = s
		around(w.take)
	}
}

func (w *walk) take() {
	switch do := w.step.do.(type) {
	case string:
		w.ask(w.step.status, do, w.step.headers, w.step.body)
	case localRequest:
		if !w.InStack() {
			w.ask(w.step.status, string(do), w.step.headers, w.step.body)
		}
	case time.Duration:
		w.pass(do)
	case func():
		do()
		w.readInbox()
	}
}

// ask sends a request, which must get a status. Headers are lines.
func (w *walk) ask(status int, request, headers, body string) {
	w.Helper()
	resp := w.send(w.request(request, headers, body))
	text := w.Text(resp)
	if resp.StatusCode != status {
		w.Errorf("%s: status %d, want %d: %s %s",
			w.step.name, resp.StatusCode, status, resp.Header.Get("Ferry-Error"), text)
	}
	answer := fmt.Sprintln(resp.StatusCode)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		if name != "Date" {
			answer += name + ": " + strings.Join(resp.Header[name], "\n  ") + "\n"
		}
	}
	if w.answered != nil {
		w.answered(request, answer, text)
	}
	w.learn(answer + text)
}

func (w *walk) request(request, headers, body string) *http.Request {
	w.Helper()
	method, path, _ := strings.Cut(w.expand(request), " ")
	if strings.HasPrefix(path, "/") {
		path = w.Root + path
	}
	r, err := http.NewRequestWithContext(w.Context(), method, path, strings.NewReader(w.expand(body)))
	check(w, err)
	for line := range strings.FieldsFuncSeq(w.expand(headers), func(r rune) bool { return r == '\n' }) {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// expand replaces names with $: ${basic USER:PASSWORD} is a login, by the usual password without another,
// ${form NAME} a file of a form, ${end} its end, and ${x N} a text of N bytes. All others are learned from earlier
// answers, see learn.
func (w *walk) expand(text string) string {
	return os.Expand(text, func(name string) string {
		what, of, _ := strings.Cut(name, " ")
		switch what {
		case "basic":
			user, other, _ := strings.Cut(of, ":")
			return apitest.Basic(user, cmp.Or(other, password))
		case "form":
			return "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + of + "\"\r\n\r\nhello " +
				of + "\r\n"
		case "end":
			return "--b--\r\n"
		case "x":
			n, err := strconv.Atoi(of)
			check(w, err)
			return strings.Repeat(what, n)
		}
		return w.vars[name]
	})
}

// found is what later steps need from an answer or a message. The address of a part may be
// that of the store; k and z are the tokens of alice's first file.
var found = sync.OnceValue(func() map[string]*regexp.Regexp {
	const table = `
	bearer  "(?:bearer|access_token)":"([\w-]+)"
	session "id":"([\w-]{20,})"
	token   "token":"(ferry_[\w-]+)"
	tokenID "id":"([\w-]{16})","name":"backup
	part    "url":"(?:https://ferry.example)?([^"]+)"
	request "id":"([0-9a-f]{16})","linkURL"
	asked   "linkURL":"https?://[^/]+(/v1/requests/in[^"]+)
	in      k=(in_[\w-]+)
	guest   Ferry-Guest: (\S+)
	etag    Etag: (".*")
	id      "files":\[\{"id":(\d+)
	file    "linkURL":"https?://[^/]+(/v1/download/[^"]+)
	claim   Location: https?://[^/]+(/v1/download/[^\n]+claim=[^\n]+)
	k       "name":"é[^}]*k=([\w-]+)
	z       "name":"é[^}]*z=([\w-]+)
	change  (/v1/auth/change\?lang=\w+&k=[\w-]+)
	reset   Location: password\?k=([\w-]+)
	pin     \\n(\d{8})\\n
	cookie  Set-Cookie: ((?:__Host-)?ferry=[\w-]+)
	asset   href="(static/[0-9a-f]+/style.css)"
	shown   "name":"shown[^}]*k=([\w-]+)
	tree    "name":"tree[^}]*k=([\w-]+)
	mails   /v1/notifications/stop[^"\\ ]*[?&]t=([\w-]+)
	sent    \\nhttps?://[^/]+(/v1/download/[^"\\]+)
	stop    \\nhttps?://[^/]+(/v1/notifications/stop[^"\\]+)`
	all := map[string]*regexp.Regexp{}
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		name, pattern, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = regexp.MustCompile(strings.TrimSpace(pattern))
	}
	return all
})

func (w *walk) learn(text string) {
	for name, re := range found() {
		m := re.FindStringSubmatch(text)
		if m == nil || w.vars[name] == m[1] {
			continue
		}
		w.vars[name] = m[1]
		if w.learned != nil {
			w.learned(name, m[1])
		}
	}
}

// readInbox learns from new messages.
func (w *walk) readInbox() {
	messages := w.Partitions("inbox")
	for _, key := range slices.Sorted(maps.Keys(messages)) {
		if !w.read[key] {
			w.learn(plain(w, []byte(messages[key])))
		}
		w.read[key] = true
	}
}

// plain returns JSON whose fields are in order and whose text has no needless escapes.
func plain(t failer, doc []byte) string {
	t.Helper()
	var all map[string]any
	check(t, json.Unmarshal(doc, &all))
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	check(t, e.Encode(all))
	return text.String()
}

// TestTheJourneyThroughADeployedStack does nothing without the tag stack: then the others take it.
func TestTheJourneyThroughADeployedStack(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	if !s.InStack() {
		t.Skip("needs a stack: go run ./infra/awslocal -- go test -tags stack ./shared/boot/apitest")
	}
	w := begin(s)
	w.pass = func(time.Duration) {}
	w.send = func(r *http.Request) (resp *http.Response) {
		expect.Eventually(func() bool { // a function caches a link for a second
			resp = s.Do(r)
			return r.Method != http.MethodGet || w.step.status == 0 || resp.StatusCode == w.step.status // a step that calls has none
		})
		return resp
	}
	w.run(func(take func()) { take() })
}
