package file_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
)

// record returns what GET says of a file.
func (s sharer) record(path string) map[string]any {
	s.Helper()
	resp := s.Request("GET", path, nil, "Authorization", "Bearer "+s.bearer)
	text := s.Text(resp)
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != 200 {
		s.Fatalf("%s: status %d, %v: %s", path, resp.StatusCode, err, text)
	}
	return got
}

func wantFields(t *testing.T, got, want map[string]any) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	for name, value := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s should be missing: %v", name, value)
		}
	}
}

// dropFields removes fields, which must be present.
func dropFields(t *testing.T, got map[string]any, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		}
		delete(got, name)
	}
}

// checksums returns those of a text as the answer writes them.
func checksums(text string) (crc, sha, digest string) {
	sum := sha256.Sum256([]byte(text))
	crc = base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc64nvme.Checksum([]byte(text))))
	return crc, hex.EncodeToString(sum[:]), "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func TestFileRecordHasEverythingKnown(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	s.AddUser("bob", password)
	crc, sha, digest := checksums("content")
	resp := s.Request("POST", "/upload?file=a%20b.txt&d=ann", strings.NewReader("content"),
		"Authorization", apitest.Basic("bob", password), "Content-Type", "text/plain", "Repr-Digest", digest)
	file := s.Decode(resp, 200).Files[0]
	got := s.record("/files/1")
	expires, err := time.Parse(time.RFC3339, got["expires"].(string))
	if in := time.Until(expires); err != nil || in < 29*24*time.Hour || in > 31*24*time.Hour || expires.Location() != time.UTC {
		t.Errorf("expires is %v, %v", got["expires"], err)
	}
	dropFields(t, got, "downloads")
	wantFields(t, got, map[string]any{
		"id": 1.0, "name": "a b.txt", "length": 7.0, "type": "text/plain", "modified": float64(file.Modified), "expires": got["expires"],
		"area": "files", "crc64nvme": crc, "sha256": sha, "uploader": "bob", "linkURL": file.LinkURL,
	})
}

func TestUnknownFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	s := newSharer(t, func(set *api.Settings, _ *local.ServiceOptions) { set.Retention.KeepDays = 0 })
	file := s.Put(s.bearer, "file=x", "").Files[0]
	crc, _, _ := checksums("")
	got := s.record("/files/1")
	dropFields(t, got, "downloads", "notifications")
	wantFields(t, got, map[string]any{
		"id": 1.0, "name": "x", "length": 0.0, "modified": float64(file.Modified), "area": "files", "crc64nvme": crc, "linkURL": file.LinkURL,
	})
}

func TestFileIsFoundOnlyInItsArea(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	s.put("x", "content")
	moved := s.ask("DELETE /files/1", 200).Files[0]
	got := s.record("/files/1?area=backup&lang=en")
	if got["area"] != "backup" || got["linkURL"] != moved.LinkURL {
		t.Errorf("the record is %v, the answer was %+v", got, moved)
	}
	for _, path := range []string{"/files/1", "/files/1?area=files"} {
		s.ask("GET "+path, 404)
	}
	s.ask("POST /files/1/restore", 200)
	s.ask("GET /files/1?area=backup", 404)
	if got := s.record("/files/1?area=files"); got["area"] != "files" {
		t.Errorf("the record is %v", got)
	}
}

func TestUsersSeeOnlyTheirOwnFileRecords(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	s.AddUser("bob", password)
	ann, bob := apitest.Basic("ann", password), apitest.Basic("bob", password)
	s.put("x", "content")
	slash := 400
	if s.InStack() { // the gateway decodes the path, which then has no route
		slash = 404
	}
	for _, c := range []struct {
		path, auth string
		status     int
	}{
		{"/files/1", "", 401}, {"/files/1", apitest.Basic("ann", "x"), 401}, {"/files/1", bob, 404}, {"/files/2", ann, 404},
		{"/files/0", ann, 400}, {"/files/-1", ann, 400}, {"/files/01", ann, 400}, {"/files/x", ann, 400}, {"/files/1%2F2", ann, slash},
		{"/files/1?area=all", ann, 400}, {"/files/1?area=Files", ann, 400}, {"/files/1?area=%", ann, 400}, {"/files/1?area=backup", ann, 404},
		{"/files/", ann, 404}, {"/files", ann, 404},
	} {
		resp := s.Request("GET", c.path, nil, "Authorization", c.auth)
		if s.Decode(resp, c.status); resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%s: Ferry-Error is missing", c.path)
		}
	}
	s.Clock.Advance(31 * 24 * time.Hour)
	s.Decode(s.Request("GET", "/files/1", nil, "Authorization", ann), 404) // expired, but not swept yet
}
