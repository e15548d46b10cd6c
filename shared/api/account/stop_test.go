package account_test

import (
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/keys"
	"ferry/shared/notify"
)

const (
	address = "ann@example.com"
	browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
)

func isStopped(s *apitest.Server) bool {
	s.Helper()
	_, found, err := notify.Suppressed(s.Context(), s.Data.Ports.Table, address)
	expect.NoErr(s.TB, err)
	return found
}

// TestOneClickUnsubscribeIsEnough as RFC 8058 has it: a mail program posts a form of either kind.
func TestOneClickUnsubscribeIsEnough(t *testing.T) {
	t.Parallel()
	parts, multipart := apitest.Form("List-Unsubscribe", "One-Click")
	for kind, body := range map[string]string{urlencoded: "List-Unsubscribe=One-Click", multipart: parts, "": ""} {
		s := apitest.New(t)
		link := keys.StopLink("", "en", s.Data.Ports.Key.Stop(address))
		s.Send("GET "+link, "").Want(200)
		expect.Equal(t, "stopped after a mail scanner has been there", isStopped(s), false)
		s.Send("POST "+link, body, "Content-Type", kind).Want(200)
		expect.Equal(t, "stopped", isStopped(s), true)
		s.Send("POST "+link, "undo=1", "Content-Type", urlencoded).Want(200)
		expect.Equal(t, "stopped after the undo", isStopped(s), false)
	}
}

func TestWrongStopTokenRevealsAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	right := s.Data.Ports.Key.Stop(address)
	s.Calls.Reset()
	for query, status := range map[string]int{
		"": 400, "?t=x": 401, "?t=" + right[:len(right)-2]: 401, "?t=" + strings.Repeat("A", 43) + right[43:]: 401,
	} {
		for _, request := range []string{"GET", "POST"} {
			a := s.Send(request+" /notifications/stop"+query, "").Want(status)
			if strings.Contains(a.Text, "example") {
				t.Errorf("%s %q: the answer is %s", request, query, a.Text)
			}
		}
		page := s.Send("GET /notifications/stop"+query, "", "Accept", browser, "Sec-Fetch-Mode", "navigate") // it says what is wrong
		page.Want(303).WantHeaders("Location", "../../stop?"+strings.TrimPrefix(query, "?"))
	}
	expect.Equal(t, "calls for wrong tokens", s.Calls.Reset(), map[string]int{})
	expect.Equal(t, "stopped", isStopped(s), false)
}
