package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/notify"
	"ferry/shared/notify/gateway"
)

// provider stands in for a provider of text messages.
type provider struct {
	status int
	answer string
	header http.Header // of the answer

	calls         int
	path, body    string
	authorization string
	kind          string
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.calls++
	p.path, p.body, p.kind, p.authorization = r.Method+" "+r.URL.RequestURI(), string(body), r.Header.Get("Content-Type"), r.Header.Get("Authorization")
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.WriteHeader(p.status)
	io.WriteString(w, p.answer)
}

func start(t *testing.T, p *provider) (address string) {
	t.Helper()
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return s.URL
}

func open(t *testing.T, c gateway.Config) *gateway.Sender {
	t.Helper()
	s, err := gateway.New(c)
	must(t, err)
	return s
}

var must = expect.NoErr

func message() notify.TextMessage {
	return notify.TextMessage{
		ID:   "1-a",
		To:   "+393331234567",
		Text: `bob: "a&b=é".pdf https://files.example.com/v1/x?lang=en&z={to}` + "\n",
	}
}

// TestTheExamplesOfTheREADMEReachTheirProviders runs the lines as a shell does, with only
// the host replaced.
func TestTheExamplesOfTheREADMEReachTheirProviders(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../infra/README.md")
	must(t, err)
	lines := regexp.MustCompile(`(?m)^ *(export FERRY_SMS_URL=.*)$`).FindAllStringSubmatch(string(text), -1)
	wants := []struct{ path, kind, body, authorization, answer, name string }{
		{path: "POST /2010-04-01/Accounts/ACCOUNT_SID/Messages.json", kind: "application/x-www-form-urlencoded",
			body:          "To=%2B393331234567&From=%2B12065550100&Body=bob%3A+%22a%26b%3D%C3%A9%22.pdf+https%3A%2F%2Ffiles.example.com%2Fv1%2Fx%3Flang%3Den%26z%3D%7Bto%7D%0A",
			authorization: "ACCOUNT_SID AUTH_TOKEN", answer: `{"sid":"SM1","status":"queued"}`, name: "SM1"},
		{path: "POST /v1/messages", kind: "application/json",
			body:          `{"message_type":"text","channel":"sms","to":"393331234567","from":"Ferry","text":"bob: \"a\u0026b=é\".pdf https://files.example.com/v1/x?lang=en\u0026z={to}\n"}`,
			authorization: "API_KEY API_SECRET", answer: `{"message_uuid":"aaaaaaaa-bbbb"}`, name: "aaaaaaaa-bbbb"},
		{path: "POST /send", kind: "application/json",
			body:          `{"phone": "+393331234567", "message": "bob: \"a\u0026b=é\".pdf https://files.example.com/v1/x?lang=en\u0026z={to}\n"}`,
			authorization: "Bearer TOKEN", answer: `accepted`},
	}
	if len(lines) != len(wants) {
		t.Fatalf("the page has %d examples, want %d", len(lines), len(wants))
	}
	for i, want := range wants {
		p := &provider{status: http.StatusCreated, answer: want.answer}
		address := start(t, p)
		value := func(name string) string {
			out, err := exec.Command("sh", "-c", lines[i][1]+`; printf %s "$`+name+`"`).Output()
			must(t, err)
			return string(out)
		}
		u, err := url.Parse(value("FERRY_SMS_URL"))
		must(t, err)
		u.Scheme, u.Host = "http", strings.TrimPrefix(address, "http://")
		s := open(t, gateway.Config{
			URL: u.String(), Body: value("FERRY_SMS_BODY"), From: value("FERRY_SMS_FROM"), Authorization: value("FERRY_SMS_AUTHORIZATION"),
		})
		name, err := s.Send(t.Context(), message())
		if user, password, ok := (&http.Request{Header: http.Header{"Authorization": {p.authorization}}}).BasicAuth(); ok {
			p.authorization = user + " " + password
		}
		if err != nil ||
			name != want.name ||
			p.path != want.path ||
			p.kind != want.kind ||
			p.body != want.body ||
			p.authorization != want.authorization {
			t.Errorf("%s: %q, %v, %+v", lines[i][1], name, err, p)
		}
	}
}

func TestOnlyARefusedTextMessageFailsForGood(t *testing.T) {
	t.Parallel()
	for status, permanent := range map[int]bool{
		307: false, 400: true, 413: true, 422: true, 429: false, 500: false,
		401: false, 402: false, 404: false, // about the login, the credit, the address
	} {
		p := &provider{
			status: status,
			answer: `{"code":21211,"message":"not a number"}`,
			header: http.Header{"Location": {"/elsewhere"}},
		}
		s := open(t, gateway.Config{URL: start(t, p), From: "Ferry", Authorization: "Bearer TOKEN"})
		_, err := s.Send(t.Context(), message())
		if err == nil ||
			errors.Is(err, notify.ErrTextRefused) != permanent ||
			!strings.Contains(err.Error(), "not a number") ||
			p.calls != 1 {
			t.Errorf("%d: %v, %d calls", status, err, p.calls)
		}
	}
	s := open(t, gateway.Config{URL: start(t, &provider{}), From: "Ferry"})
	_, err := s.Send(t.Context(), notify.TextMessage{ID: "1", To: "123", Text: "hi"})
	expect.Err(t, "a malformed number", err, notify.ErrTextRefused)
}

func TestErrorsAreShortAndShowNoSecret(t *testing.T) {
	t.Parallel()
	const key, token = "hidden0123456789abcdef", "AbC-hidden_456789.0123"
	p := &provider{
		status: http.StatusForbidden,
		answer: "Basic YW5uOnN3b3JkZmlzaA== swordfish " + key + " " + token + strings.Repeat(" x", 1<<20),
	}
	down := start(t, p)
	for _, address := range []string{down, "http://127.0.0.1:1"} {
		address = strings.Replace(address, "//", "//ann:swordfish@", 1) + "/?key=" + key
		_, err := open(t, gateway.Config{
			URL:  address,
			Body: "token=" + token + "&to={to}&text={text}",
		}).Send(t.Context(), message())
		if err == nil ||
			len(err.Error()) > 400 ||
			regexp.MustCompile("swordfish|YW5u|hidden").MatchString(err.Error()) {
			t.Errorf("%v", err)
		}
	}
	bad := []gateway.Config{
		{URL: "sms.example.com/?key=hidden"}, {URL: "ftp://hidden@sms.example.com"}, {URL: "https://"}, {URL: "https://a.example/%zzhidden"},
	}
	for _, body := range []string{
		"nexmo", `{"to":"{to}","text":{text}}`, `{"to":"{to}"}`, "to={to}", "text={text}", "", "twilio",
	} {
		bad = append(bad, gateway.Config{URL: "https://a.example", Body: body})
	}
	for _, c := range bad {
		if _, err := gateway.New(c); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestAnAnswerShowsNoPartOfALink(t *testing.T) {
	t.Parallel()
	const token = "kxYTk2l-XqaMqLrpZTFYyOD1WQvEG_yKyTfhV0m6Bg0"
	p := &provider{
		status: http.StatusBadRequest,
		answer: `{"text":"` + strings.Repeat("a ", 70) + `https:\/\/a.example\/?k=` + token + `"}`,
	}
	m := message()
	m.Text = "https://a.example/?k=" + token
	if _, err := open(t, gateway.Config{URL: start(t, p), From: "Ferry"}).Send(t.Context(), m); err == nil ||
		strings.Contains(err.Error(), token[:6]) {
		t.Error(err)
	}
}

func TestAProviderThatHangsEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	_, err := open(t, gateway.Config{URL: server.URL, From: "Ferry"}).Send(ctx, message())
	if !errors.Is(err, context.Canceled) || errors.Is(err, notify.ErrTextRefused) {
		t.Error(err)
	}
}
