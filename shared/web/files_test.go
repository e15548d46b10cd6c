package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
)

// cookie logs a user in as a browser does.
func (s sharer) cookie(name string) string {
	s.Helper()
	a := s.post("login", url.Values{"user": {name}, "password": {apitest.Password}}).Want(303)
	cookie, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
	return cookie
}

func TestTheFilesPageSaysWhatBecameOfEachFile(t *testing.T) {
	t.Parallel()
	s := begin(t)
	cookie := s.cookie("ann")
	wantTexts(t, s.page("files", "Cookie", cookie).Want(200), "No files yet", "kept here for 30 days", "-<table",
		"-class=\"quota\"")
	link := s.Upload("file=plain.txt", "x").LinkURL
	s.Upload("file=to-bob.txt&m=bob@example.com&m=carla@example.com", "x")
	s.Deliver()
	s.Upload("file=waiting.txt&m=bob@example.com", "x")
	s.Upload("file=limited.txt&downloads=1", "x")
	s.Ask("DELETE /files/4/links/own", "").Want(200)
	s.As("bob").Upload("file=from-bob.txt&d=ann", "x")
	s.Get(link)
	s.Get(link)
	request := apitest.Read[struct{ LinkURL, ID string }](s.Ask("POST /requests", `{"title":"x"}`).Want(201))
	s.Send("PUT "+request.LinkURL+"&file=guest.txt&by=Tom", "x", "User-Agent", "curl/8").Want(200)
	a := s.page("files", "Cookie", cookie).Want(200)
	rows := rowsOf(a)
	for name, want := range map[string][]string{
		"plain.txt": {"state good", "Downloaded twice"}, "to-bob.txt": {"bob@example.com\u2069 and 1 more", "Sent"},
		"waiting.txt": {"Being sent"}, "limited.txt": {"Ended"}, "from-bob.txt": {"from \u2068bob\u2069", "New"},
		"guest.txt": {"from \u2068Tom\u2069, by request", "New"},
	} {
		for _, text := range want {
			if !strings.Contains(strings.ReplaceAll(rows[name], "</span><span>", ""), text) {
				t.Errorf("the row of %s lacks %q: %s", name, text, rows[name])
			}
		}
	}
	a = s.page("files?request="+request.ID, "Cookie", cookie).Want(200)
	wantTexts(t, a, "guest.txt", "-plain.txt")
}

// rowsOf returns the rows of a list by the names of their files.
func rowsOf(a apitest.Answer) map[string]string {
	rows := map[string]string{}
	for _, row := range regexp.MustCompile(`(?s)<tr[^>]*>\n<td class="pick">.*?</tr>`).FindAllString(a.Text, -1) {
		_, rest, _ := strings.Cut(row, `aria-label="Choose `)
		name, _, _ := strings.Cut(rest, `"`)
		rows[name] = row
	}
	return rows
}

func TestTheFilesPageIsSearchedSortedAndComesInPages(t *testing.T) {
	t.Parallel()
	s := begin(t)
	cookie := s.cookie("ann")
	for i := range 60 {
		s.Upload(fmt.Sprintf("file=n%02d.txt", i), strings.Repeat("x", i%7+1))
	}
	s.Upload("file=ÜBUNG.pdf&expires=1h", strings.Repeat("x", 100))
	order := func(query string) string {
		var names []string
		a := s.page("files?"+query, "Cookie", cookie).Want(200)
		for _, found := range regexp.MustCompile(`aria-label="Choose ([^"]*\.[a-z]*)"`).FindAllStringSubmatch(a.Text, -1) {
			names = append(names, found[1])
		}
		return strings.Join(names, " ")
	}
	for query, begins := range map[string]string{
		"": "ÜBUNG.pdf n59.txt n58.txt", "sort=old": "n00.txt n01.txt", "sort=name": "n00.txt n01.txt",
		"sort=size": "ÜBUNG.pdf n55.txt",
		"sort=ends": "ÜBUNG.pdf", "from=50": "n10.txt n09.txt", "search=%C3%BCb": "ÜBUNG.pdf",
		"sort=x&from=-7": "ÜBUNG.pdf n59.txt", "from=9999": "",
	} {
		if got := order(query); !strings.HasPrefix(got, begins) {
			t.Errorf("%q lists %s", query, got)
		}
	}
	a := s.page("files?search=txt&sort=size", "Cookie", cookie).Want(200)
	wantTexts(t, a, `value="txt"`, "1 to 50 of 60", `href="files?from=50&amp;search=txt&amp;sort=size" rel="next"`,
		`aria-sort="descending"`)
	wantTexts(t, s.page("files?after=30&before=45-40", "Cookie", cookie).Want(200), "1 to 29 of the older files",
		"n28.txt", "-of 29", `href="files?after=40&amp;before=45&amp;from=last" rel="prev"`)
	wantTexts(t, s.page("files?from=last", "Cookie", cookie).Want(200), "51 to 61 of 61", "n00.txt")
	wantTexts(t, s.page("files?search=%3Cb%3E", "Cookie", cookie).Want(200), "No name contains “&lt;b&gt;”",
		"Search the backup")
}

func TestAFilesPanelHasItsLinksAndForms(t *testing.T) {
	t.Parallel()
	s := begin(t)
	cookie := s.cookie("ann")
	name := `<b>"x".txt`
	link := s.Upload("file="+url.QueryEscape(name)+"&m=bob@example.com&expires=10d", "hello").LinkURL
	s.Deliver()
	s.Ask("POST /files/1/links", `{"downloads":3,"password":"open sesame","expires":"2d"}`).Want(201)
	a := s.page("files?id=1&search=x", "Cookie", cookie).Want(200)
	wantTexts(t, a, `class="split"`, `<tr aria-current="true">`, `<h1 id="panel"><bdi>&lt;b&gt;&#34;x&#34;.txt</bdi>`,
		"-<b>\"", "bob@example.com", "Sent",
		"Your own link", "Another link", "0 of 3 downloads", "with a password", strings.ReplaceAll(link, "&", "&amp;"),
		"CRC64NVME",
		`data-call="PATCH v1/files/1"`, `data-call="DELETE v1/files/1"`, `data-call="POST v1/files/1/links"`,
		`data-call="PATCH v1/files/1/links/own"`,
		`data-call="POST v1/files/1/links/own/renew"`, `href="files?search=x"`, "In 7 days", "Remove the password",
		`src="qr?`, "-\">Never<")
	for _, query := range []string{"id=2", "id=x", "id=-1", "id=1&area=backup", "id=1%2Flinks"} {
		wantTexts(t, s.page("files?"+query, "Cookie", cookie).Want(404), "no longer here")
	}
	s.page("files?id=1", "Cookie", s.cookie("bob")).Want(404)
	s.Ask("DELETE /files/1", "").Want(200)
	a = s.page("files?deleted=1,x,-", "Cookie", cookie).Want(200)
	wantTexts(t, a, "1 file is in the backup area now.", "Undo", `<input type="hidden" name="id" value="1">`)
	wantTexts(t, s.page("files?area=backup", "Cookie", cookie).Want(200), "<h1>Backup</h1>", "for 90 days", "Gone")
	a = s.page("files?area=backup&id=1", "Cookie", cookie).Want(200)
	wantTexts(t, a, `data-call="POST v1/files/1/restore"`, `data-call="DELETE v1/files/1?area=backup"`, "for good",
		"-Send it to more")
}

func TestEveryCallOfAPageIsOneOfTheInterface(t *testing.T) {
	t.Parallel()
	s := begin(t)
	cookie := s.cookie("ann")
	s.Upload("file=a.txt", "x")
	s.Ask("POST /uploads", `{"name":"half.bin","length":100}`).Want(201)
	s.Ask("POST /requests", `{"title":"x"}`).Want(201)
	calls := 0
	for _, page := range []string{"files", "files?id=1", "requests", "requests?new=1"} {
		a := s.page(page, "Cookie", cookie).Want(200)
		for _, found := range regexp.MustCompile(`data-call="([A-Z]+) v1(/[^"]*)"`).FindAllStringSubmatch(a.Text, -1) {
			calls++
			if found[1] == "DELETE" {
				continue
			}
			if got := s.Send(found[1]+" "+found[2], "{}", "Cookie", cookie, "Origin", s.Root, "Sec-Fetch-Site",
				"same-origin"); got.Code >= 404 {
				t.Errorf("%s: %d", found[0], got.Code)
			}
			s.Send(found[1]+" "+found[2], "{}", "Cookie", cookie, "Origin", "https://evil.example", "Sec-Fetch-Site",
				"cross-site").Want(403)
		}
		wantTexts(t, a, "allow scripts", "-style=", "-onclick")
	}
	if calls < 9 {
		t.Errorf("only %d calls were found", calls)
	}
	wantTexts(t, s.page("files", "Cookie", cookie), "Not finished", "half.bin", `data-call="DELETE v1/uploads/`)
}

func TestAFileThatNobodyHasTakenSoonBeforeItsEndWarns(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.Upload("file=soon.txt&m=bob@example.com&expires=30h", "x")
	s.Deliver()
	wantTexts(t, s.page("files", "Cookie", s.cookie("ann")).Want(200), "state warn", "Not downloaded yet")
	s.Clock.Advance(31 * time.Hour)
	wantTexts(t, s.page("files", "Cookie", s.cookie("ann")).Want(200), "No files yet")
}
