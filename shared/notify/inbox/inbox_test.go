package inbox_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/boot/expect"
	"ferry/shared/notify"
	"ferry/shared/notify/inbox"
	"ferry/shared/notify/mail"
	"ferry/shared/service"
	"ferry/shared/table/sqlite"
	"ferry/shared/web"
)

type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

var must = expect.NoErr

// box is an inbox with its clock.
type box struct {
	*testing.T
	*inbox.Inbox
	*clock
}

func open(t *testing.T) box {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "ferry.db"), sqlite.Options{NoSync: true})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	c := &clock{time.Date(2026, 8, 7, 14, 30, 0, 0, time.UTC)}
	return box{t, inbox.New(db, c.now), c}
}

func aMail(id string) mail.Message {
	return mail.Message{
		ID: id, From: "ferry@example.org", To: "ann@example.com", Subject: "Subject " + id,
		Text: "demo sent you a file.\n\nhttps://ferry.example.org/v1/download/file?lang=en&k=TOKEN\n\n12345678\n\n> look at https://quoted.example.org\n> 87654321\n",
		HTML: `<p style="color: red">HTML "of" <a href="https://ferry.example.org/">mail</a></p>`,
	}
}

func (in box) send(m mail.Message) {
	in.Helper()
	_, err := in.Mail().Send(in.Context(), m)
	must(in, err)
}

func (in box) list(limit int) []inbox.Message {
	in.Helper()
	messages, err := in.List(in.Context(), limit)
	must(in, err)
	return messages
}

func TestMessagesAreListedNewestFirstAndStayForSevenDays(t *testing.T) {
	t.Parallel()
	in := open(t)
	first, m := in.Time, aMail("0001-a")
	in.send(m)
	in.Time = in.Add(time.Minute)
	_, err := in.SMS().Send(t.Context(), notify.TextMessage{ID: "0-0002-b", To: "+393331234567", Text: "hello"})
	must(t, err)
	in.send(m) // a message that is sent twice is kept once
	want := []inbox.Message{
		{ID: "0002-b", Channel: "sms", To: "+393331234567", Text: "hello", Sent: in.Time},
		{ID: m.ID, Channel: "mail", To: m.To, Subject: m.Subject, Text: m.Text, HTML: m.HTML, Sent: first},
	}
	for after, left := range map[time.Duration]int{
		inbox.Keep - time.Millisecond: 2,
		inbox.Keep:                    1,
		inbox.Keep + time.Minute:      0,
	} {
		in.Time = first.Add(after)
		if got := in.list(10); !slices.Equal(got, want[:left]) {
			t.Errorf("after %v: got %+v", after, got)
		}
	}
}

func TestListIsBounded(t *testing.T) {
	t.Parallel()
	in := open(t)
	for i := range inbox.MaxList + 1 {
		in.send(aMail(fmt.Sprintf("%04d", i)))
	}
	for limit, want := range map[int]int{0: 1, 3: 3, 1 << 30: inbox.MaxList} {
		if got := in.list(limit); len(got) != want || got[0].ID != fmt.Sprintf("%04d", inbox.MaxList) {
			t.Errorf("limit %d gave %d messages", limit, len(got))
		}
	}
}

func TestInvalidMessageIsRefused(t *testing.T) {
	t.Parallel()
	in := open(t)
	m := aMail("0001-a")
	m.To = "nobody"
	_, err := in.Mail().Send(t.Context(), m)
	expect.Err(t, "a bad address", err, mail.ErrPermanent)
	_, err = in.SMS().Send(t.Context(), notify.TextMessage{ID: "1", To: "333", Text: "x"})
	expect.Err(t, "a bad number", err, notify.ErrTextRefused)
	expect.Equal(t, "messages that were kept", len(in.list(10)), 0)
}

// get sends a request with Host and Accept headers to the handler.
func (in box) get(method, host, accept string, query ...string) *http.Response {
	r := httptest.NewRequest(method, "/inbox"+strings.Join(query, ""), nil)
	r.Host = host
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	return in.answer(r, false)
}

func (in box) answer(r *http.Request, proxied bool) *http.Response {
	w := httptest.NewRecorder()
	p := &api.Ports{Service: service.New(service.Ports{
		Now: time.Now,
		Log: slog.New(slog.DiscardHandler),
	}, service.Settings{})}
	asJSON := func(r *http.Request) bool { return param.Asked(r) == param.AsJSON }
	inbox.Handler(p.Outlet(), in.Inbox, asJSON, web.Inbox(p), proxied).ServeHTTP(w, r)
	return w.Result()
}

func (in box) body(r *http.Response) string {
	in.Helper()
	b, err := io.ReadAll(r.Body)
	must(in, err)
	return string(b)
}

func TestPageShowsLinkAndPINAndTakesNoTextForMarkup(t *testing.T) {
	t.Parallel()
	in := open(t)
	in.send(aMail("0001-a"))
	m := aMail("0002-b")
	const evil = `"></pre></iframe><script>alert(1)</script>`
	m.Subject, m.Text, m.HTML = evil, evil+` https://x/"><script>alert(2)</script> javascript:alert(3)`, evil
	in.send(m)
	page := in.body(in.get("GET", "127.0.0.1:8080", "text/html,application/xhtml+xml,*/*;q=0.8"))
	for _, want := range []string{
		"Subject 0001-a", "ann@example.com", "7 August 2026, 14:30 UTC",
		`<a href="https://ferry.example.org/v1/download/file?lang=en&amp;k=TOKEN" target="_blank" rel="noopener noreferrer">`,
		"<strong>12345678</strong>",
		`sandbox="allow-popups allow-popups-to-escape-sandbox" loading="lazy" src="inbox?mail=0001-a"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, not := range []string{
		"<script>", "<strong>87654321", "color: red", `href="https://quoted.example.org`, `href="javascript`,
		"ZgotmplZ",
	} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %s", not)
		}
	}
}

func TestTheHTMLOfAMailIsShownAloneAndCanDoNothing(t *testing.T) {
	t.Parallel()
	in := open(t)
	in.send(aMail("0001-a"))
	res := in.get("GET", "localhost", "text/html", "?mail=0001-a")
	expect.Equal(t, "the mail", in.body(res), `<base target="_blank">`+aMail("").HTML)
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; " +
			"sandbox allow-popups allow-popups-to-escape-sandbox",
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
	} {
		expect.Equal(t, name, res.Header.Get(name), want)
	}
	expect.Equal(t, "another mail", in.get("GET", "localhost", "text/html", "?mail=0002-b").StatusCode, 404)
	expect.Equal(
		t,
		"the mail under a public name",
		in.get("GET", "ferry.lan", "text/html", "?mail=0001-a").StatusCode,
		403,
	)
}

func TestEmptyInboxSaysWhatToDo(t *testing.T) {
	t.Parallel()
	in := open(t)
	if page := in.body(in.get("GET", "localhost", "")); !strings.Contains(page, "you@example.org") {
		t.Errorf("got %s", page)
	}
	expect.Equal(t, "the JSON", in.body(in.get("GET", "localhost", "application/json")), "[]\n")
}

func TestInboxIsJSONIfTheClientPrefersIt(t *testing.T) {
	t.Parallel()
	in := open(t)
	in.send(aMail("0001-a"))
	for accept, asJSON := range map[string]bool{"application/json": true, "text/html": false} {
		res := in.get("GET", "localhost:8080", accept)
		if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") != asJSON ||
			res.Header.Get("Vary") != "Accept" {
			t.Errorf("Accept %s: headers %v", accept, res.Header)
		}
	}
	var got []map[string]any
	must(t, json.Unmarshal([]byte(in.body(in.get("GET", "localhost", "application/json"))), &got))
	m := aMail("0001-a")
	want := map[string]any{
		"id":      m.ID,
		"channel": "mail",
		"to":      m.To,
		"subject": m.Subject,
		"text":    m.Text,
		"html":    m.HTML,
		"sent":    "2026-08-07T14:30:00Z",
	}
	if len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestInboxIsOnlyReadAndUnderLocalNames(t *testing.T) {
	t.Parallel()
	in := open(t)
	in.send(aMail("0001-a"))
	for status, hosts := range map[int][]string{
		200: {"localhost", "localhost:8080", "LOCALHOST.:8080", "127.0.0.1", "127.9.9.9:1", "[::1]", "[::1]:8080"},
		403: {
			"ferry.lan", "evil.example.org", "evil.example.org:8080", "localhost.evil.example.org", "127.0.0.1.evil.example.org",
			"10.0.0.1:8080", "0.0.0.0:8080", "",
		},
	} {
		for _, host := range hosts {
			res := in.get("GET", host, "application/json")
			if res.StatusCode != status || strings.Contains(in.body(res), "TOKEN") != (status == 200) {
				t.Errorf("host %q: status %d", host, res.StatusCode)
			}
		}
	}
	if res := in.get("DELETE", "localhost", ""); res.StatusCode != 405 || res.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("DELETE: status %d, %v", res.StatusCode, res.Header)
	}
}

func TestInboxIsShownThroughAProxyOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	in := open(t)
	in.send(aMail("0001-a"))
	check := func(header, value string, minor, unasked int) {
		for proxied, want := range map[bool]int{false: unasked, true: 200} {
			r := httptest.NewRequest("GET", "/inbox", nil)
			r.Host, r.ProtoMinor = "127.0.0.1:8080", minor
			r.Header.Set(header, value)
			if res := in.answer(r, proxied); res.StatusCode != want ||
				strings.Contains(in.body(res), "TOKEN") != (want == 200) {
				t.Errorf("%s, asked for %v: status %d, want %d", header, proxied, res.StatusCode, want)
			}
		}
	}
	check("Accept", "application/json", 1, 200)
	check("X-Requested-With", "XMLHttpRequest", 1, 200)
	check("Accept", "application/json", 0, 403) // a plain proxy_pass of nginx
	check("X-Forwarded-For", "", 1, 403)
	for header := range strings.FieldsSeq(`Forwarded X-Forwarded-Proto Via X-Real-IP X-Real-Port X-Client-IP
		True-Client-IP X-Cluster-Client-Ip X-ProxyUser-Ip X-Proxy-Id Proxy-Connection X-Remote-Addr X-Varnish
		Surrogate-Capability CF-Connecting-IP CF-Ray CDN-Loop X-Azure-ClientIP X-Amz-Cf-Id X-Amzn-Trace-Id
		Fastly-Client-IP Fly-Client-IP X-Appengine-User-IP X-Cloud-Trace-Context`) {
		check(header, "203.0.113.7", 1, 403)
	}
}
