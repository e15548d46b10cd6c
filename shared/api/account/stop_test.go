package account_test

import (
	"bytes"
	"errors"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/notify"
)

const (
	address = "ann@example.com"
	browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
)

func path(s *apitest.Server, lang string) string {
	return auth.StopLink("", lang, s.Data.Ports.Key.Stop(address))
}

// page sends a request like a browser: a POST if there is a form, else a GET.
func page(s *apitest.Server, path, form string) (*http.Response, string) {
	s.Helper()
	method := "GET"
	headers := []string{"Accept", browser}
	if form != "" {
		method = "POST"
		headers = append(headers, "Content-Type", "application/x-www-form-urlencoded")
	}
	resp := s.Request(method, path, strings.NewReader(form), headers...)
	if resp.StatusCode >= 500 && s.InStack() { // as the page asks for: an answer of the table can get lost
		resp = s.Request(method, path, strings.NewReader(form), headers...)
	}
	return resp, s.Text(resp)
}

// reason returns why the address gets no mail, or "" if it gets mail.
func reason(s *apitest.Server) notify.SuppressReason {
	s.Helper()
	e, _, err := notify.Suppressed(s.Context(), s.Data.Ports.Table, address)
	must(s.TB, err)
	var all []string
	for _, cause := range e.Causes() {
		all = append(all, string(cause.Reason))
	}
	return notify.SuppressReason(strings.Join(all, " and "))
}

func TestOnlyPOSTStopsMail(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	link := path(s, "en")
	for _, accept := range []string{browser, "*/*"} {
		if resp := s.Request("GET", link, nil, "Accept", accept); resp.StatusCode != 200 || reason(s) != "" {
			t.Errorf("a mail scanner stops the mail: status %d, %q", resp.StatusCode, reason(s))
		}
	}
	if resp := s.Request("HEAD", link, nil); resp.StatusCode != 405 || reason(s) != "" {
		t.Errorf("HEAD: status %d, and the address is %q", resp.StatusCode, reason(s))
	}
	s.Decode(s.Request("POST", link, nil), 200)
	if got := reason(s); got != notify.AddressStopped {
		t.Errorf("the address is %q", got)
	}
}

func TestOneClickUnsubscribeIsEnough(t *testing.T) {
	t.Parallel()
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	must(t, errors.Join(parts.WriteField("List-Unsubscribe", "One-Click"), parts.Close()))
	for _, k := range []struct{ what, kind, body string }{
		{"a form", "application/x-www-form-urlencoded", "List-Unsubscribe=One-Click"},
		{"a multipart form", parts.FormDataContentType(), form.String()},
		{"nothing", "", ""},
	} {
		s := apitest.New(t)
		for range 3 {
			resp := s.Request("POST", path(s, "en"), strings.NewReader(k.body), "Content-Type", k.kind)
			if e := s.Decode(resp, 200); e.Description != "handlerNotificationsStop:succsessfully" || reason(s) != notify.AddressStopped {
				t.Errorf("%s: %+v, and the address is %q", k.what, e, reason(s))
			}
		}
	}
}

func TestStoppedMailCanBeResumed(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	link := path(s, "en")
	const stop, undo = "<button>Send me no more<", `name="undo" value="1"><button>Undo: get them again<`
	for _, k := range []struct {
		form string
		want notify.SuppressReason
		text string
		next string
	}{
		{"", "", "ann@example.com will get no more", stop},
		{"x=", notify.AddressStopped, "ann@example.com gets no e-mails", undo},
		{"x=", notify.AddressStopped, "ann@example.com gets no e-mails", undo},
		{"", notify.AddressStopped, "ann@example.com gets no e-mails", undo},
		{"undo=1", "", "ann@example.com will get no more", stop},
		{"undo=1", "", "ann@example.com will get no more", stop},
	} {
		resp, got := page(s, link, k.form)
		if resp.StatusCode != 200 || !strings.Contains(got, k.text) || !strings.Contains(got, k.next) || reason(s) != k.want {
			t.Errorf("after %q: status %d, the address is %q, and the page\n%s", k.form, resp.StatusCode, reason(s), got)
		}
	}
}

func TestBouncedAddressStaysSuppressedWhateverItsOwnerWants(t *testing.T) {
	t.Parallel()
	const back, none, stop, undo = "came back, or were reported", "gets no e-mails from Ferry about files", "<button>Send me no more<", "<button>Undo"
	for _, why := range []notify.SuppressReason{notify.AddressBounced, notify.AddressComplained} {
		s := apitest.New(t)
		must(t, s.Data.Ports.Table.Write(t.Context(), notify.Suppress(address, why, "", time.Now())))
		for _, k := range []struct {
			form       string
			want       notify.SuppressReason
			text, next string
		}{
			{"", why, back, stop},
			{"undo=1", why, back, stop},
			{"x=", why + " and stopped", none, undo},
			{"", why + " and stopped", none, undo},
			{"undo=1", why, back, stop},
		} {
			resp, got := page(s, path(s, "en"), k.form)
			if resp.StatusCode != 200 || reason(s) != k.want || !strings.Contains(got, k.text) || !strings.Contains(got, k.next) {
				t.Errorf("%s, after %q: status %d, the address is %q, and the page\n%s", why, k.form, resp.StatusCode, reason(s), got)
			}
		}
	}
}

func TestWrongStopTokenRevealsAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	right := s.Data.Ports.Key.Stop(address)
	s.Calls.Reset()
	for _, k := range []struct {
		query  string
		status int
	}{
		{"", 400}, {"?t=", 400}, {"?t=%zz", 400}, {"?t=x", 401}, {"?t=" + right[:len(right)-2], 401}, {"?t=" + right + "x", 401},
		{"?t=" + strings.Repeat("A", 43) + right[43:], 401}, {"?t=" + strings.Repeat("A", 5000), 401},
	} {
		for _, form := range []string{"", "undo=1"} {
			resp, got := page(s, "/notifications/stop"+k.query, form)
			if resp.StatusCode != k.status || strings.Contains(got, "example") || strings.Contains(got, "<form") || !strings.Contains(got, "This link is not valid") {
				t.Errorf("%q, %q: status %d, and the page\n%s", k.query, form, resp.StatusCode, got)
			}
			s.Decode(s.Request("POST", "/notifications/stop"+k.query, strings.NewReader(form)), k.status)
		}
	}
	if calls := s.Calls.Reset(); len(calls) != 0 || reason(s) != "" {
		t.Errorf("wrong tokens cost %v, and the address is %q", calls, reason(s))
	}
}

func TestStopPageExistsInEachLanguage(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	seen := map[string]string{}
	for _, lang := range api.Languages() {
		for _, form := range []string{"", "x=", "undo=1"} {
			resp, got := page(s, path(s, lang), form)
			_, title, _ := strings.Cut(got, "<h1>")
			title, _, _ = strings.Cut(title, "</h1>")
			if resp.Header.Get("Content-Language") != lang || !strings.Contains(got, `<html lang="`+lang+`">`) || strings.Contains(got, "%!") || !strings.Contains(got, address) {
				t.Errorf("in %s, after %q: %s", lang, form, got)
			}
			if other := seen[title]; title == "" || other != "" && other != lang {
				t.Errorf("%q is used in %s and %s", title, other, lang)
			}
			seen[title] = lang
		}
		_, wrong := page(s, auth.StopLink("", lang, "x"), "")
		if !strings.Contains(wrong, `<html lang="`+lang+`">`) {
			t.Errorf("a wrong link in %s: %s", lang, wrong)
		}
	}
}

func TestStopPageDoesNotLeakItsAddress(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	resp, got := page(s, path(s, "en"), "")
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex",
		"Content-Type": "text/html; charset=utf-8", "Vary": "Accept",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	} {
		if is := resp.Header.Get(name); is != want {
			t.Errorf("%s is %q, want %q", name, is, want)
		}
	}
	if strings.Contains(got, "src=") || strings.Contains(got, "http") {
		t.Errorf("the page links elsewhere: %s", got)
	}
	if log := s.Log.String(); strings.Contains(log, address) || strings.Contains(log, s.Data.Ports.Key.Stop(address)[:20]) {
		t.Errorf("the log has the address or its token: %s", log)
	}
}

func TestAddressIsEscapedOnThePage(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	odd := `"<script>alert(1)</script>"@example.com`
	_, got := page(s, auth.StopLink("", "en", s.Data.Ports.Key.Stop(odd)), "")
	if strings.Contains(got, "<script") || !strings.Contains(got, "&lt;script&gt;") {
		t.Errorf("got %s", got)
	}
}

func TestBrowsersGetErrorPages(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Calls.Before("table.Update", func() error { return errors.New("the disk is gone") })
	resp, got := page(s, path(s, "de"), "x=")
	if resp.StatusCode != 500 || !strings.Contains(got, "Etwas ist schiefgegangen") || strings.Contains(got, "disk") {
		t.Errorf("status %d: %s", resp.StatusCode, got)
	}
}

func TestStoppedAddressGetsNoMailAboutFilesUntilResumed(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("demo", "a password to try")
	upload := func() int {
		resp := s.Request("POST", "/upload?file=a.txt&m="+address, strings.NewReader("x"), "Authorization", apitest.Basic("demo", "a password to try"))
		s.Decode(resp, 200)
		return s.Deliver()
	}
	s.Decode(s.Request("POST", path(s, "en"), nil), 200)
	if n := upload(); n != 0 {
		t.Errorf("after stopping, %d mails were sent", n)
	}
	page(s, path(s, "en"), "undo=1")
	if n := upload(); n != 1 {
		t.Errorf("after resuming, %d mails were sent", n)
	}
}
