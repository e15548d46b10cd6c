package file_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
)

func TestOnlyTheRightTokenOpensAFile(t *testing.T) {
	t.Parallel()
	s := begin(t)
	_, k, _ := strings.Cut(s.share("kept.txt", "kept"), "k=")
	s.share("gone.txt", "gone")
	_, z, _ := strings.Cut(s.backUp("2"), "z=")
	last := map[bool]string{true: "B", false: "A"}[strings.HasSuffix(k, "A")]
	const table = `
		200 | /download/file?k=K
		200 | /download/file/backup?z=Z
		200 | /download/file?x=1&k=K&lang=it
		400 | /download/file
		400 | /download/file?k=
		400 | /download/file/backup
		400 | /download/file?z=K | the other parameter
		400 | /download/file/backup?k=Z
		401 | /download/file?k=Z | the other area
		401 | /download/file/backup?z=K
		401 | /download/file?k=OTHER
		401 | /download/file?k=..%2F%00
		401 | /download/file?k=BEGINNING
		401 | /download/file?k=KA
		401 | /download/file?k=LAST
		401 | /download/file?k=UPPER
		401 | /download/file?k=LONG
		400 | /download/file?k=%zz`
	known := strings.NewReplacer("K", k, "Z", z, "OTHER", strings.Repeat(
		"A",
		43,
	), "BEGINNING", k[:20], "LAST", k[:42]+last,
		"UPPER", strings.ToUpper(k), "LONG", strings.Repeat("A", 20_000))
	for _, cells := range rowsOf(known.Replace(table)) {
		path := cells[1]
		if strings.Contains(path, "%zz") && s.InStack() {
			continue // the gateway parses queries
		}
		a := s.Send("GET "+path, "")
		expect.Equal(t, path, strconv.Itoa(a.Code), cells[0])
		s.Send("GET "+path, "", "Accept", "text/html", "Sec-Fetch-Mode", "navigate").Want(303) // the page says what is wrong
		s.Send("HEAD "+path, "").Want(a.Code)
		if a.Code == 200 {
			expect.Equal(t, path, a.Text, map[bool]string{
				true:  "gone",
				false: "kept",
			}[strings.Contains(path, "backup")])
		}
	}
	if log := s.Log.String(); strings.Contains(log, k) || strings.Contains(log, z) {
		t.Error("a token is in the log")
	}
}

// TestALinkLivesThroughMailsAndChats adds what they, and those who send links on, add to one.
func TestALinkLivesThroughMailsAndChats(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.share("a;b.txt", "gone")
	guarded := s.Upload("file=b.txt&downloads=9", "kept").LinkURL
	_, z, _ := strings.Cut(s.backUp("1"), "z=")
	link := s.share("a;b.txt", "kept")
	for _, after := range []string{
		".", ")", ");", ">", "%3E", "%29.", ";", "_", "-", ",", "'", "&x=%zz", "&x=%", "&%zz=1", ";x=1", "&fbclid=a;b", "%20and", "%E9",
	} {
		s.Send("GET "+link+after, "").Want(200)
		s.Send("GET /download/file/backup?z="+z+after, "").Want(200)
		s.Send("GET "+guarded+after, "").Want(302)
		page := strings.Replace(
			s.Send(
				"GET "+link+after,
				"",
				"Accept",
				"text/html",
				"Sec-Fetch-Mode",
				"navigate",
			).Want(303).Header.Get("Location"),
			"../..",
			s.Root,
			1,
		)
		if a := s.Send("GET "+page, "", "Accept", "text/html", "Sec-Fetch-Mode", "navigate"); a.Code != 200 ||
			!strings.Contains(a.Text, "a;b.txt") {
			t.Errorf("with %q the page of the link has status %d", after, a.Code)
		}
	}
	s.Send("GET "+s.claim(guarded)+").", "").Want(200)
	s.Send("GET "+strings.Replace(link, "&k=", "&amp;k=", 1), "").Want(200)
	s.Send("GET "+link+"&amp;about", "").Want(200)
	s.Send("GET "+link+"&entry=%zz", "").Want(400) // it is not taken for absent
}

func TestAFileThatExpiresIsGoneBeforeTheSweep(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("a.txt", "x")
	s.Clock.Advance(30*24*time.Hour - time.Minute)
	expect.Equal(t, "on the last day", s.Get(link), "x")
	s.Clock.Advance(2 * time.Minute)
	s.Send("GET "+link, "").Want(401)
	s.Caller = s.As("ann")
	s.Ask("GET /files/1", "").Want(404)
	s.Ask("DELETE /files/1", "").Want(404)
}

func TestFileIsFoundOnlyInItsArea(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.share("x", "content")
	moved := s.backUp("1")
	expect.Equal(t, "the link", recordOf(s.Caller, "/files/1?area=backup&lang=en").LinkURL, moved)
	s.Ask("GET /files/1", "").Want(404)
	s.Ask("GET /files/1?area=files", "").Want(404)
	s.Ask("POST /files/1/restore", "").Want(200)
	s.Ask("GET /files/1?area=backup", "").Want(404)
	expect.Equal(t, "the area", recordOf(s.Caller, "/files/1?area=files").Area, blob.Files)
}
