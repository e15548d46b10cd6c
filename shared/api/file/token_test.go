package file_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/service"
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
	known := strings.NewReplacer("K", k, "Z", z, "OTHER", strings.Repeat("A", 43), "BEGINNING", k[:20], "LAST", k[:42]+last,
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
			expect.Equal(t, path, a.Text, map[bool]string{true: "gone", false: "kept"}[strings.Contains(path, "backup")])
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
		page := strings.Replace(s.Send("GET "+link+after, "", "Accept", "text/html", "Sec-Fetch-Mode", "navigate").Want(303).Header.Get("Location"), "../..", s.Root, 1)
		if a := s.Send("GET "+page, "", "Accept", "text/html", "Sec-Fetch-Mode", "navigate"); a.Code != 200 || !strings.Contains(a.Text, "a;b.txt") {
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

// record returns what GET says of a file.
func (s sharer) record(path string) map[string]any {
	s.Helper()
	return apitest.Read[map[string]any](s.Ask("GET "+path, "").Want(200))
}

// wantFields checks all fields of a record but some, which must be there.
func wantFields(t *testing.T, got, want map[string]any, others ...string) {
	t.Helper()
	for _, name := range others {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		}
		delete(got, name)
	}
	expect.Equal(t, "the record", got, want)
}

// checksums returns those of a text as the answer writes them.
func checksums(text string) (crc, sha, digest string) {
	sum := sha256.Sum256([]byte(text))
	crc = base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc64nvme.Checksum([]byte(text))))
	return crc, hex.EncodeToString(sum[:]), "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func TestFileRecordHasEverythingKnown(t *testing.T) {
	t.Parallel()
	s := begin(t)
	crc, sha, digest := checksums("content")
	file := s.As("bob").Upload("file=a%20b.txt&d=ann", "content", "Content-Type", "text/plain", "Repr-Digest", digest)
	got := s.record("/files/1")
	expires, err := time.Parse(time.RFC3339, got["expires"].(string))
	if in := time.Until(expires); err != nil || in < 29*24*time.Hour || in > 31*24*time.Hour || expires.Location() != time.UTC {
		t.Errorf("expires is %v, %v", got["expires"], err)
	}
	wantFields(t, got, map[string]any{
		"id": 1.0, "name": "a b.txt", "length": 7.0, "type": "text/plain", "modified": float64(file.Modified),
		"area": "files", "crc64nvme": crc, "sha256": sha, "uploader": "bob", "linkURL": file.LinkURL,
	}, "downloads", "links", "expires")
}

func TestUnknownFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	s := begin(t, func(set *service.Settings, _ *local.ServiceOptions) { set.Retention.KeepDays = 0 })
	file := s.Upload("file=x", "")
	crc, _, _ := checksums("")
	wantFields(t, s.record("/files/1"), map[string]any{
		"id": 1.0, "name": "x", "length": 0.0, "modified": float64(file.Modified), "area": "files", "crc64nvme": crc, "linkURL": file.LinkURL,
	}, "downloads", "links", "notifications")
}

func TestFileIsFoundOnlyInItsArea(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.share("x", "content")
	moved := s.backUp("1")
	got := s.record("/files/1?area=backup&lang=en")
	if got["area"] != "backup" || got["linkURL"] != moved {
		t.Errorf("the record is %v, the link was %s", got, moved)
	}
	s.Ask("GET /files/1", "").Want(404)
	s.Ask("GET /files/1?area=files", "").Want(404)
	s.Ask("POST /files/1/restore", "").Want(200)
	s.Ask("GET /files/1?area=backup", "").Want(404)
	expect.Equal(t, "the area", s.record("/files/1?area=files")["area"], any("files"))
}
