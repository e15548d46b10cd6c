package inbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/envelope"
	"ferry/shared/notify"
	"ferry/shared/notify/inbox"
	"ferry/shared/notify/mail"
	"ferry/shared/table/sqlite"
)

type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func open(t *testing.T) (*inbox.Inbox, *clock) {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "ferry.db"), sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c := &clock{time.Date(2026, 8, 7, 14, 30, 0, 0, time.UTC)}
	return inbox.New(db, c.now), c
}

func aMail(id string) mail.Message {
	return mail.Message{
		ID: id, From: "ferry@example.org", To: "ann@example.com", Subject: "Subject " + id,
		Text: "demo sent you a file.\n\nhttps://ferry.example.org/v1/download/file?lang=en&k=TOKEN\n\n12345678\n\n> look at https://quoted.example.org\n> 87654321\n",
		HTML: `<p style="color: red">HTML "of" <a href="https://ferry.example.org/">mail</a></p>`,
	}
}

func sendMail(t *testing.T, in *inbox.Inbox, m mail.Message) {
	t.Helper()
	if _, err := in.Mail().Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, in *inbox.Inbox, limit int) []inbox.Message {
	t.Helper()
	messages, err := in.List(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func TestMessagesAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	in, clock := open(t)
	sendMail(t, in, aMail("0001-a"))
	clock.Time = clock.Add(time.Minute)
	if _, err := in.SMS().Send(t.Context(), notify.TextMessage{ID: "0002-b", To: "+393331234567", Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	got := list(t, in, 10)
	if len(got) != 2 {
		t.Fatalf("got %d messages", len(got))
	}
	want := inbox.Message{ID: "0002-b", Channel: "sms", To: "+393331234567", Text: "hello", Sent: clock.Time}
	if got[0] != want {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
	m := aMail("0001-a")
	want = inbox.Message{ID: m.ID, Channel: "mail", To: m.To, Subject: m.Subject, Text: m.Text, HTML: m.HTML, Sent: clock.Add(-time.Minute)}
	if got[1] != want {
		t.Errorf("got %+v, want %+v", got[1], want)
	}
}

func TestMessageSentTwiceIsKeptOnce(t *testing.T) {
	t.Parallel()
	in, clock := open(t)
	first := clock.Time
	sendMail(t, in, aMail("0001-a"))
	clock.Time = clock.Add(time.Hour)
	sendMail(t, in, aMail("0001-a"))
	if got := list(t, in, 10); len(got) != 1 || !got[0].Sent.Equal(first) {
		t.Errorf("got %+v", got)
	}
}

func TestMessagesStayForSevenDays(t *testing.T) {
	t.Parallel()
	in, clock := open(t)
	sendMail(t, in, aMail("0001-a"))
	clock.Time = clock.Add(inbox.Keep - time.Millisecond)
	if len(list(t, in, 10)) != 1 {
		t.Error("a message was removed too early")
	}
	clock.Time = clock.Add(time.Millisecond)
	if len(list(t, in, 10)) != 0 {
		t.Error("a message stayed too long")
	}
}

func TestListIsBounded(t *testing.T) {
	t.Parallel()
	in, _ := open(t)
	for i := range inbox.MaxList + 1 {
		sendMail(t, in, aMail(fmt.Sprintf("%04d", i)))
	}
	for limit, want := range map[int]int{-1: 1, 0: 1, 3: 3, inbox.MaxList: inbox.MaxList, 1 << 30: inbox.MaxList} {
		if got := list(t, in, limit); len(got) != want || got[0].ID != fmt.Sprintf("%04d", inbox.MaxList) {
			t.Errorf("limit %d gave %d messages", limit, len(got))
		}
	}
}

func TestInvalidMessageIsRefused(t *testing.T) {
	t.Parallel()
	in, _ := open(t)
	m := aMail("0001-a")
	m.To = "nobody"
	if _, err := in.Mail().Send(t.Context(), m); !errors.Is(err, mail.ErrPermanent) {
		t.Errorf("a bad address gave %v", err)
	}
	if _, err := in.SMS().Send(t.Context(), notify.TextMessage{ID: "1", To: "333", Text: "x"}); !errors.Is(err, notify.ErrTextRefused) {
		t.Errorf("a bad number gave %v", err)
	}
	if len(list(t, in, 10)) != 0 {
		t.Error("it was kept")
	}
}

// get sends a request with Host and Accept headers to the handler.
func get(in *inbox.Inbox, method, host, accept string) *http.Response {
	outlet := envelope.Outlet{Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	r := httptest.NewRequest(method, "/inbox", nil)
	r.Host = host
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	inbox.Handler(outlet, in, api.Prefers, false).ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPageShowsLinkAndPIN(t *testing.T) {
	t.Parallel()
	in, _ := open(t)
	sendMail(t, in, aMail("0001-a"))
	res := get(in, "GET", "127.0.0.1:8080", "text/html,application/xhtml+xml,*/*;q=0.8")
	page := body(t, res)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("status %d, %v", res.StatusCode, res.Header)
	}
	for _, want := range []string{
		"Subject 0001-a", "ann@example.com", "7 August 2026, 14:30:00 UTC",
		`<a href="https://ferry.example.org/v1/download/file?lang=en&amp;k=TOKEN" target="_blank" rel="noopener noreferrer">`,
		"<strong>12345678</strong>",
		`srcdoc="&lt;base target=&#34;_blank&#34;&gt;&lt;p style=&#34;color: red&#34;&gt;HTML &#34;of&#34;`,
		`sandbox="allow-popups allow-popups-to-escape-sandbox"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, not := range []string{"<script", "<strong>87654321", `href="https://quoted.example.org`, "ZgotmplZ"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %s", not)
		}
	}
	csp := res.Header.Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "script-src") ||
		res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Referrer-Policy") != "no-referrer" ||
		res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", res.Header)
	}
}

func TestTextOfAMessageIsNeverMarkup(t *testing.T) {
	t.Parallel()
	in, _ := open(t)
	m := aMail("0001-a")
	const evil = `"></pre></iframe><script>alert(1)</script>`
	m.Subject, m.Text, m.HTML = evil, evil+` https://x/"><script>alert(2)</script> javascript:alert(3)`, evil
	sendMail(t, in, m)
	page := body(t, get(in, "GET", "localhost", "text/html"))
	if strings.Contains(page, "<script>") || strings.Contains(page, `href="javascript`) {
		t.Errorf("markup got through: %s", page)
	}
}

func TestEmptyInboxSaysWhatToDo(t *testing.T) {
	t.Parallel()
	in, _ := open(t)
	if page := body(t, get(in, "GET", "localhost", "")); !strings.Contains(page, "?m=you@example.org") {
		t.Errorf("got %s", page)
	}
	if got := body(t, get(in, "GET", "localhost", "application/json")); got != "[]\n" {
		t.Errorf("as JSON: %q", got)
	}
}

func TestInboxIsJSONIfTheClientPrefersIt(t *testing.T) {
	t.Parallel()
	in, _ := open(t)
	sendMail(t, in, aMail("0001-a"))
	tests := []struct {
		accept string
		json   bool
	}{
		{"application/json", true},
		{"application/json, text/html;q=0.9", true},
		{"text/html;q=0.5, application/json", true},
		{"text/html, application/json;q=0.9", false},
		{"*/*", false},
		{"", false},
	}
	for _, tt := range tests {
		t.Run("Accept: "+tt.accept, func(t *testing.T) {
			t.Parallel()
			res := get(in, "GET", "localhost:8080", tt.accept)
			if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") != tt.json || res.Header.Get("Vary") != "Accept" {
				t.Errorf("headers %v", res.Header)
			}
		})
	}
	var got []map[string]any
	if err := json.Unmarshal([]byte(body(t, get(in, "GET", "localhost", "application/json"))), &got); err != nil {
		t.Fatal(err)
	}
	m := aMail("0001-a")
	want := map[string]any{"id": m.ID, "channel": "mail", "to": m.To, "subject": m.Subject, "text": m.Text, "html": m.HTML, "sent": "2026-08-07T14:30:00Z"}
	if len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestInboxAnswersOnlyUnderLocalNames(t *testing.T) {
	t.Parallel()
	in, _ := open(t)
	sendMail(t, in, aMail("0001-a"))
	tests := []struct {
		host   string
		status int
	}{
		{"localhost", 200}, {"localhost:8080", 200}, {"LOCALHOST.:8080", 200}, {"127.0.0.1", 200}, {"127.9.9.9:1", 200},
		{"[::1]", 200}, {"[::1]:8080", 200}, {"ferry.lan", 403},
		{"evil.example.org", 403}, {"evil.example.org:8080", 403}, {"localhost.evil.example.org", 403}, {"127.0.0.1.evil.example.org", 403},
		{"10.0.0.1:8080", 403}, {"0.0.0.0:8080", 403}, {"", 403},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("host %q gets %d", tt.host, tt.status), func(t *testing.T) {
			t.Parallel()
			res := get(in, "GET", tt.host, "application/json")
			if res.StatusCode != tt.status || strings.Contains(body(t, res), "TOKEN") != (tt.status == 200) {
				t.Errorf("status %d", res.StatusCode)
			}
		})
	}
}

func TestInboxIsShownThroughAProxyOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	in, _ := open(t)
	sendMail(t, in, aMail("0001-a"))
	tests := []struct {
		name, header, value string
		minor               int // of the HTTP version
		auto                int // the status without being asked for
	}{
		{"a direct request", "Accept", "application/json", 1, 200},
		{"Forwarded", "Forwarded", "for=203.0.113.7", 1, 403},
		{"an empty header", "X-Forwarded-For", "", 1, 403},
		{"X-Forwarded-Proto alone", "X-Forwarded-Proto", "https", 1, 403},
		{"Via", "Via", "1.1 proxy", 1, 403},
		{"X-Real-IP", "X-Real-IP", "203.0.113.7", 1, 403},
		{"X-Client-IP", "X-Client-IP", "203.0.113.7", 1, 403},
		{"CF-Connecting-IP", "CF-Connecting-IP", "203.0.113.7", 1, 403},
		{"CDN-Loop", "CDN-Loop", "cloudflare", 1, 403},
		{"CF-Ray", "CF-Ray", "8f1-MXP", 1, 403},
		{"True-Client-IP", "True-Client-IP", "203.0.113.7", 1, 403},
		{"X-Azure-ClientIP", "X-Azure-ClientIP", "203.0.113.7", 1, 403},
		{"X-Amz-Cf-Id", "X-Amz-Cf-Id", "id", 1, 403},
		{"X-Amzn-Trace-Id", "X-Amzn-Trace-Id", "Root=1", 1, 403},
		{"X-Remote-Addr", "X-Remote-Addr", "203.0.113.7", 1, 403},
		{"X-Proxy-Id", "X-Proxy-Id", "1", 1, 403},
		{"Proxy-Connection", "Proxy-Connection", "keep-alive", 1, 403},
		{"X-Real-Port", "X-Real-Port", "1", 1, 403},
		{"X-ProxyUser-Ip", "X-ProxyUser-Ip", "203.0.113.7", 1, 403},
		{"X-Varnish", "X-Varnish", "1", 1, 403},
		{"Fastly-Client-IP", "Fastly-Client-IP", "203.0.113.7", 1, 403},
		{"Fly-Client-IP", "Fly-Client-IP", "203.0.113.7", 1, 403},
		{"X-Appengine-User-IP", "X-Appengine-User-IP", "203.0.113.7", 1, 403},
		{"X-Cloud-Trace-Context", "X-Cloud-Trace-Context", "1", 1, 403},
		{"Surrogate-Capability", "Surrogate-Capability", "x", 1, 403},
		{"a cache in front", "X-Cluster-Client-Ip", "203.0.113.7", 1, 403},
		{"a browser's own header", "X-Requested-With", "XMLHttpRequest", 1, 200},
		{"the HTTP version of a plain proxy_pass", "Accept", "application/json", 0, 403},
	}
	for _, tt := range tests {
		for proxied, want := range map[bool]int{false: tt.auto, true: 200} {
			r := httptest.NewRequest("GET", "/inbox", nil)
			r.Host, r.ProtoMinor = "127.0.0.1:8080", tt.minor
			r.Header.Set(tt.header, tt.value)
			w := httptest.NewRecorder()
			o := envelope.Outlet{Now: time.Now, Log: slog.New(slog.DiscardHandler)}
			inbox.Handler(o, in, api.Prefers, proxied).ServeHTTP(w, r)
			if w.Code != want || strings.Contains(w.Body.String(), "TOKEN") != (want == 200) {
				t.Errorf("%s, asked for %v: status %d, want %d", tt.name, proxied, w.Code, want)
			}
		}
	}
}

func TestTheInboxCanOnlyBeRead(t *testing.T) {
	t.Parallel()
	in, _ := open(t)
	if res := get(in, "DELETE", "localhost", ""); res.StatusCode != 405 || res.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("status %d, %v", res.StatusCode, res.Header)
	}
}
