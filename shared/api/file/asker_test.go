package file_test

import (
	"strconv"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
)

// askers are those who may ask for a link, by the headers that they send.
func askers() map[string][]string {
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
	return map[string][]string{
		"nameless": {"User-Agent", ""},
		"robot":    {"User-Agent", "Slackbot 1.0"},
		"prefetch": {"User-Agent", firefox, "Sec-Purpose", "prefetch"},
		"program":  {"User-Agent", "curl/8.14.1"},
		"browser":  {"User-Agent", firefox, "Accept", "text/html,*/*;q=0.8", "Sec-Fetch-Mode", "navigate"},
	}
}

const right = "open sesame"

// TestWhoAsksAndWhatTheyShowDecidesWhatALinkGives has the status of a GET; HEAD has the same, but for a redirect to a
// claim. Whoever gets no bytes has taken no download.
func TestWhoAsksAndWhatTheyShowDecidesWhatALinkGives(t *testing.T) {
	t.Parallel()
	const table = `
		link              shows            nameless robot prefetch program browser
		plain             nothing          200 303 303 200 303
		limited           nothing          403 303 303 302 303
		limited           claim            200 303 303 200 200
		protected         nothing          401 303 303 401 303
		protected         wrong            401 401 401 401 303
		protected         right            302 302 302 302 303
		protected         claim            200 303 303 200 200
		protected         claim+right      200 200 303 200 200
		limited+protected nothing          401 303 303 401 303
		limited+protected right            302 302 302 302 303
		limited+protected claim            200 303 303 200 200
		limited+protected claim+right      200 200 303 200 200
		limited+protected claim+wrong      200 401 303 200 200`
	s := begin(t)
	rows := strings.Split(strings.TrimSpace(table), "\n")
	names := strings.Fields(rows[0])[2:]
	if s.InStack() {
		rows = rows[:5] // each link is a new one, and the emulator takes its time
	}
	for _, row := range rows[1:] {
		cells := strings.Fields(row)
		for i, text := range cells[2:] {
			want, err := strconv.Atoi(text)
			expect.NoErr(t, err)
			s.wantAnswer(cells[0], cells[1], names[i], want)
		}
	}
}

// wantAnswer checks what a new link of a kind answers.
func (s sharer) wantAnswer(kind, shows, name string, want int) {
	s.Helper()
	query, password := "", []string(nil)
	if strings.Contains(kind, "limited") {
		query = "&downloads=1"
	}
	if strings.Contains(kind, "protected") {
		password = []string{"Ferry-Link-Password", right}
	}
	for _, method := range []string{"HEAD", "GET"} {
		f := s.Upload("file=a.txt"+query, "0123456789", password...)
		address, headers := f.LinkURL, askers()[name]
		if strings.Contains(shows, "claim") {
			address = s.claim(address, password...)
		}
		if strings.Contains(shows, "right") {
			headers = append(headers, "Ferry-Link-Password", right)
		}
		if strings.Contains(shows, "wrong") {
			headers = append(headers, "Ferry-Link-Password", "wrong")
		}
		what, status := method+" "+kind+", "+shows+", "+name, want
		if method == "HEAD" && want == 302 {
			status = 200
		}
		a := s.Send(method+" "+address, "", headers...)
		expect.Equal(s.TB, what, a.Code, status)
		if a.Code == 401 && !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), `Basic realm="link"`) {
			s.Errorf("%s: the challenge is %q", what, a.Header.Get("WWW-Authenticate"))
		}
		if a.Code == 403 && !strings.Contains(a.Header.Get("Ferry-Error"), "send a User-Agent") {
			s.Errorf("%s: the reason is %q", what, a.Header.Get("Ferry-Error"))
		}
		if left := s.links(strconv.FormatInt(f.ID, 10))[0].Left; query != "" &&
			(*left == 0) != (method == "GET" && a.Code == 200) {
			s.Errorf("%s: %d are left", what, *left)
		}
	}
}

func TestWhoSendsNoNameIsNeverLedToAPage(t *testing.T) {
	t.Parallel()
	s := begin(t)
	tree := pack(t, "a", "1")
	limited := s.bundle(`,"downloads":1`, tree).Want(200).File().LinkURL
	locked := s.bundle(`,"password":"`+right+`"`, tree).Want(200).File().LinkURL
	plain := s.share("a.txt", "1")
	gone := s.backUp(strconv.FormatInt(s.Upload("file=b.txt", "1").ID, 10))
	for request, want := range map[string]int{
		"GET " + plain + "&preview": 200, "GET " + gone: 200, "GET " + limited + "&entries": 403, "HEAD " + limited + "&entry=a": 403,
		"GET " + limited + "&preview": 403, "GET " + limited + "&about": 200, "GET " + locked + "&entries": 401, "GET " + locked + "&download=1": 401,
		"GET " + limited[:len(limited)-1]: 401,
	} {
		for _, more := range [][]string{nil, {"Accept", "text/html", "Sec-Fetch-Mode", "navigate"}} {
			expect.Equal(t, request, s.Send(request, "", append([]string{"User-Agent", ""}, more...)...).Code, want)
		}
	}
	s.Send("GET "+locked+"&entries", "", "User-Agent", "", "Ferry-Link-Password", right).Want(200)
	s.Send("GET "+s.claimOf(limited, "&entry=a"), "", "User-Agent", "").Want(200)
}
