package account_test

import (
	"bytes"
	"errors"
	"mime/multipart"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/keys"
	"ferry/shared/notify"
)

const (
	address = "ann@example.com"
	browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
)

func path(s *apitest.Server, lang string) string {
	return keys.StopLink("", lang, s.Data.Ports.Key.Stop(address))
}

// reason returns why the address gets no mail, or "" if it gets mail.
func reason(s *apitest.Server) notify.SuppressReason {
	s.Helper()
	e, _, err := notify.Suppressed(s.Context(), s.Data.Ports.Table, address)
	expect.NoErr(s.TB, err)
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
	for accept, status := range map[string]int{browser: 303, "*/*": 200} {
		s.Send("GET "+link, "", "Accept", accept, "User-Agent", "Mozilla/5.0").Want(status)
		expect.Equal(t, "the address after a mail scanner has been there", reason(s), "")
	}
	s.Send("HEAD "+link, "").Want(405)
	expect.Equal(t, "the address after HEAD", reason(s), "")
	s.Send("POST "+link, "").Want(200)
	expect.Equal(t, "the address", reason(s), notify.AddressStopped)
}

func TestOneClickUnsubscribeIsEnough(t *testing.T) {
	t.Parallel()
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	expect.NoErr(t, errors.Join(parts.WriteField("List-Unsubscribe", "One-Click"), parts.Close()))
	for kind, body := range map[string]string{urlencoded: "List-Unsubscribe=One-Click", parts.FormDataContentType(): form.String(), "": ""} {
		s := apitest.New(t)
		for range 3 {
			a := s.Send("POST "+path(s, "en"), body, "Content-Type", kind).Want(200)
			expect.Equal(t, "the answer to "+kind, a.Description, "handlerNotificationsStop:succsessfully")
			expect.Equal(t, "the address", reason(s), notify.AddressStopped)
		}
	}
}

// causes sends forms, and compares why the address then gets no mail.
func causes(s *apitest.Server, all [][2]string) {
	s.Helper()
	for _, k := range all {
		form, want := k[0], k[1]
		s.Send("POST "+path(s, "en"), form, "Content-Type", urlencoded).Want(200)
		expect.Equal(s.TB, "the address after "+form, string(reason(s)), want)
	}
}

func TestStoppedMailCanBeResumed(t *testing.T) {
	t.Parallel()
	causes(apitest.New(t), [][2]string{{"x=", "stopped"}, {"x=", "stopped"}, {"undo=1", ""}, {"undo=1", ""}})
}

func TestBouncedAddressStaysSuppressedWhateverItsOwnerWants(t *testing.T) {
	t.Parallel()
	for _, why := range []notify.SuppressReason{notify.AddressBounced, notify.AddressComplained} {
		s := apitest.New(t)
		expect.NoErr(t, s.Data.Ports.Table.Write(t.Context(), notify.Suppress(address, why, "", time.Now())))
		both := string(why) + " and stopped"
		causes(s, [][2]string{{"undo=1", string(why)}, {"x=", both}, {"x=", both}, {"undo=1", string(why)}})
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
		for _, request := range []string{"GET", "POST"} {
			a := s.Send(request+" /notifications/stop"+query, "").Want(status)
			if strings.Contains(a.Text, "example") {
				t.Errorf("%s %q: the answer is %s", request, query, a.Text)
			}
		}
		s.Send("POST /notifications/stop"+query, "undo=1").Want(status)
	}
	expect.Equal(t, "calls for wrong tokens", s.Calls.Reset(), map[string]int{})
	expect.Equal(t, "the address", reason(s), "")
}

func TestABrowserIsLedToThePageThatStopsMail(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	for _, link := range []string{path(s, "de"), keys.StopLink("", "de", "x")} { // the page says what is wrong with a token
		_, query, _ := strings.Cut(link, "?")
		a := s.Send("GET "+link, "", "Accept", browser, "Sec-Fetch-Mode", "navigate").Want(303)
		a.WantHeaders("Location", "../../stop?"+query, "Cache-Control", "no-store", "Referrer-Policy", "same-origin", "Vary", "Accept, Sec-Fetch-Mode, User-Agent")
	}
	s.Send("POST "+path(s, "de"), "x=", "Accept", browser, "Sec-Fetch-Mode", "navigate", "Content-Type", urlencoded).Want(303)
	expect.Equal(t, "the address after a browser's form", reason(s), notify.AddressStopped)
	if log := s.Log.String(); strings.Contains(log, address) || strings.Contains(log, s.Data.Ports.Key.Stop(address)[:20]) {
		t.Errorf("the log has the address or its token: %s", log)
	}
}

func TestStoppedAddressGetsNoMailAboutFilesUntilResumed(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.Send("POST "+path(c.Server, "en"), "").Want(200)
	c.Upload("file=a.txt&m="+address, "x")
	expect.Equal(t, "mails after stopping", c.Deliver(), 0)
	c.Send("POST "+path(c.Server, "en"), "undo=1", "Content-Type", urlencoded).Want(200)
	c.Upload("file=a.txt&m="+address, "x")
	expect.Equal(t, "mails after resuming", c.Deliver(), 1)
}
