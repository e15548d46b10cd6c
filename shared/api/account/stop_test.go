package account_test

import (
	"bytes"
	"errors"
	"mime/multipart"
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
func page(s *apitest.Server, path, form string) apitest.Answer {
	s.Helper()
	request, headers := "GET "+path, []string{"Accept", browser}
	if form != "" {
		request, headers = "POST "+path, append(headers, "Content-Type", urlencoded)
	}
	a := s.Send(request, form, headers...)
	if a.Code >= 500 && s.InStack() { // as the page asks for: an answer of the table can get lost
		a = s.Send(request, form, headers...)
	}
	return a
}

// reason returns why the address gets no mail, or "" if it gets mail.
func reason(s *apitest.Server) notify.SuppressReason {
	s.Helper()
	e, _, err := notify.Suppressed(s.Context(), s.Data.Ports.Table, address)
	apitest.Must(s.TB, err)
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
		s.Send("GET "+link, "", "Accept", accept).Want(200)
		apitest.Equal(t, "the address after a mail scanner has been there", reason(s), "")
	}
	s.Send("HEAD "+link, "").Want(405)
	apitest.Equal(t, "the address after HEAD", reason(s), "")
	s.Send("POST "+link, "").Want(200)
	apitest.Equal(t, "the address", reason(s), notify.AddressStopped)
}

func TestOneClickUnsubscribeIsEnough(t *testing.T) {
	t.Parallel()
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	apitest.Must(t, errors.Join(parts.WriteField("List-Unsubscribe", "One-Click"), parts.Close()))
	for kind, body := range map[string]string{urlencoded: "List-Unsubscribe=One-Click", parts.FormDataContentType(): form.String(), "": ""} {
		s := apitest.New(t)
		for range 3 {
			a := s.Send("POST "+path(s, "en"), body, "Content-Type", kind).Want(200)
			apitest.Equal(t, "the answer to "+kind, a.Description, "handlerNotificationsStop:succsessfully")
			apitest.Equal(t, "the address", reason(s), notify.AddressStopped)
		}
	}
}

// answer is what a page says after a form was sent, or none.
type answer struct {
	form       string
	want       notify.SuppressReason
	text, next string
}

func wantPages(s *apitest.Server, all []answer) {
	s.Helper()
	for _, k := range all {
		a := page(s, path(s, "en"), k.form).Want(200)
		if !strings.Contains(a.Text, k.text) || !strings.Contains(a.Text, k.next) || reason(s) != k.want {
			s.Errorf("after %q: the address is %q, and the page\n%s", k.form, reason(s), a.Text)
		}
	}
}

func TestStoppedMailCanBeResumed(t *testing.T) {
	t.Parallel()
	const stop, undo = "<button>Send me no more<", `name="undo" value="1"><button>Undo: get them again<`
	const more, none = "ann@example.com will get no more", "ann@example.com gets no e-mails"
	wantPages(apitest.New(t), []answer{
		{"", "", more, stop},
		{"x=", notify.AddressStopped, none, undo},
		{"x=", notify.AddressStopped, none, undo},
		{"", notify.AddressStopped, none, undo},
		{"undo=1", "", more, stop},
		{"undo=1", "", more, stop},
	})
}

func TestBouncedAddressStaysSuppressedWhateverItsOwnerWants(t *testing.T) {
	t.Parallel()
	const back, none, stop, undo = "came back, or were reported", "gets no e-mails from Ferry about files", "<button>Send me no more<", "<button>Undo"
	for _, why := range []notify.SuppressReason{notify.AddressBounced, notify.AddressComplained} {
		s := apitest.New(t)
		apitest.Must(t, s.Data.Ports.Table.Write(t.Context(), notify.Suppress(address, why, "", time.Now())))
		wantPages(s, []answer{
			{"", why, back, stop},
			{"undo=1", why, back, stop},
			{"x=", why + " and stopped", none, undo},
			{"", why + " and stopped", none, undo},
			{"undo=1", why, back, stop},
		})
	}
}

func TestWrongStopTokenRevealsAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	right := s.Data.Ports.Key.Stop(address)
	s.Calls.Reset()
	for query, status := range map[string]int{
		"": 400, "?t=": 400, "?t=%zz": 400, "?t=x": 401, "?t=" + right[:len(right)-2]: 401, "?t=" + right + "x": 401,
		"?t=" + strings.Repeat("A", 43) + right[43:]: 401, "?t=" + strings.Repeat("A", 5000): 401,
	} {
		for _, form := range []string{"", "undo=1"} {
			a := page(s, "/notifications/stop"+query, form).Want(status)
			if strings.Contains(a.Text, "example") || strings.Contains(a.Text, "<form") || !strings.Contains(a.Text, "This link is not valid") {
				t.Errorf("%q, %q: the page is\n%s", query, form, a.Text)
			}
			s.Send("POST /notifications/stop"+query, form).Want(status)
		}
	}
	apitest.Equal(t, "calls for wrong tokens", s.Calls.Reset(), map[string]int{})
	apitest.Equal(t, "the address", reason(s), "")
}

func TestStopPageExistsInEachLanguage(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	seen := map[string]string{}
	for _, lang := range api.Languages() {
		for _, form := range []string{"", "x=", "undo=1"} {
			a := page(s, path(s, lang), form)
			got := a.Text
			_, title, _ := strings.Cut(got, "<h1>")
			title, _, _ = strings.Cut(title, "</h1>")
			if a.Header.Get("Content-Language") != lang || !strings.Contains(got, `<html lang="`+lang+`">`) || strings.Contains(got, "%!") || !strings.Contains(got, address) {
				t.Errorf("in %s, after %q: %s", lang, form, got)
			}
			if other := seen[title]; title == "" || other != "" && other != lang {
				t.Errorf("%q is used in %s and %s", title, other, lang)
			}
			seen[title] = lang
		}
		if wrong := page(s, auth.StopLink("", lang, "x"), "").Text; !strings.Contains(wrong, `<html lang="`+lang+`">`) {
			t.Errorf("a wrong link in %s: %s", lang, wrong)
		}
	}
}

func TestStopPageDoesNotLeakItsAddress(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	a := page(s, path(s, "en"), "")
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex",
		"Content-Type": "text/html; charset=utf-8", "Vary": "Accept",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	} {
		apitest.Equal(t, name, a.Header.Get(name), want)
	}
	if strings.Contains(a.Text, "src=") || strings.Contains(a.Text, "http") {
		t.Errorf("the page links elsewhere: %s", a.Text)
	}
	if log := s.Log.String(); strings.Contains(log, address) || strings.Contains(log, s.Data.Ports.Key.Stop(address)[:20]) {
		t.Errorf("the log has the address or its token: %s", log)
	}
}

func TestAddressIsEscapedOnThePage(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	odd := `"<script>alert(1)</script>"@example.com`
	got := page(s, auth.StopLink("", "en", s.Data.Ports.Key.Stop(odd)), "").Text
	if strings.Contains(got, "<script") || !strings.Contains(got, "&lt;script&gt;") {
		t.Errorf("got %s", got)
	}
}

func TestBrowsersGetErrorPages(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Calls.Before("table.Update", func() error { return errors.New("the disk is gone") })
	got := page(s, path(s, "de"), "x=").Want(500).Text
	if !strings.Contains(got, "Etwas ist schiefgegangen") || strings.Contains(got, "disk") {
		t.Errorf("got %s", got)
	}
}

func TestStoppedAddressGetsNoMailAboutFilesUntilResumed(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.Send("POST "+path(c.Server, "en"), "").Want(200)
	c.Upload("file=a.txt&m="+address, "x")
	apitest.Equal(t, "mails after stopping", c.Deliver(), 0)
	page(c.Server, path(c.Server, "en"), "undo=1")
	c.Upload("file=a.txt&m="+address, "x")
	apitest.Equal(t, "mails after resuming", c.Deliver(), 1)
}
