package file_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
)

func begin(t *testing.T, options ...apitest.Option) *apitest.Server {
	t.Helper()
	s := apitest.New(t, options...)
	for _, name := range []string{"alice", "bob"} {
		s.AddUser(name, password)
	}
	return s
}

// get returns the record of a file.
func get(s *apitest.Server, path, user string) map[string]any {
	s.Helper()
	resp := s.Request("GET", path, nil, "Authorization", apitest.Basic(user, password))
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
	s := begin(t)
	crc, sha, digest := checksums("content")
	resp := s.Request("POST", "/upload?file=a%20b.txt&d=alice", strings.NewReader("content"),
		"Authorization", apitest.Basic("bob", password), "Content-Type", "text/plain", "Repr-Digest", digest)
	file := s.Decode(resp, 200).Files[0]
	got := get(s, "/files/1", "alice")
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
	s := begin(t, func(set *api.Settings, _ *local.ServiceOptions) { set.Retention.KeepDays = 0 })
	file := s.Put(s.Login("alice", password), "file=x", "").Files[0]
	crc, _, _ := checksums("")
	got := get(s, "/files/1", "alice")
	dropFields(t, got, "downloads", "notifications")
	wantFields(t, got, map[string]any{
		"id": 1.0, "name": "x", "length": 0.0, "modified": float64(file.Modified), "area": "files", "crc64nvme": crc, "linkURL": file.LinkURL,
	})
}

func TestFileIsFoundOnlyInItsArea(t *testing.T) {
	t.Parallel()
	s := begin(t)
	auth := apitest.Basic("alice", password)
	s.Put(s.Login("alice", password), "file=x", "content")
	moved := s.Decode(s.Request("DELETE", "/files/1", nil, "Authorization", auth), 200).Files[0]
	got := get(s, "/files/1?area=backup&lang=en", "alice")
	if got["area"] != "backup" || got["linkURL"] != moved.LinkURL {
		t.Errorf("the record is %v, the answer was %+v", got, moved)
	}
	for _, path := range []string{"/files/1", "/files/1?area=files"} {
		s.Decode(s.Request("GET", path, nil, "Authorization", auth), 404)
	}
	s.Decode(s.Request("POST", "/files/1/restore", nil, "Authorization", auth), 200)
	s.Decode(s.Request("GET", "/files/1?area=backup", nil, "Authorization", auth), 404)
	if got := get(s, "/files/1?area=files", "alice"); got["area"] != "files" {
		t.Errorf("the record is %v", got)
	}
}

func TestUsersSeeOnlyTheirOwnFileRecords(t *testing.T) {
	t.Parallel()
	s := begin(t)
	alice, bob := apitest.Basic("alice", password), apitest.Basic("bob", password)
	s.Put(s.Login("alice", password), "file=x", "content")
	slash := 400
	if s.InStack() { // the gateway decodes the path, which then has no route
		slash = 404
	}
	for _, c := range []struct {
		path, auth string
		status     int
	}{
		{"/files/1", "", 401}, {"/files/1", apitest.Basic("alice", "x"), 401}, {"/files/1", bob, 404}, {"/files/2", alice, 404},
		{"/files/0", alice, 400}, {"/files/-1", alice, 400}, {"/files/01", alice, 400}, {"/files/x", alice, 400}, {"/files/1%2F2", alice, slash},
		{"/files/1?area=all", alice, 400}, {"/files/1?area=Files", alice, 400}, {"/files/1?area=%", alice, 400}, {"/files/1?area=backup", alice, 404},
		{"/files/", alice, 404}, {"/files", alice, 404},
	} {
		resp := s.Request("GET", c.path, nil, "Authorization", c.auth)
		if s.Decode(resp, c.status); resp.Header.Get("Ferry-Error") == "" {
			t.Errorf("%s: Ferry-Error is missing", c.path)
		}
	}
	s.Clock.Advance(31 * 24 * time.Hour)
	s.Decode(s.Request("GET", "/files/1", nil, "Authorization", alice), 404) // expired, but not swept yet
}

func TestEarlierUsersFileIsNotFound(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.Put(s.Login("alice", password), "file=x", "content")
	if _, err := file.Service(s.Data.Ports).Get(t.Context(), auth.User{Name: "alice", Incarnation: 1}, "files", 1); err == nil {
		t.Error("the file is found")
	}
}

func TestHEADOfAFileRecordHasNoBody(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.Put(s.Login("alice", password), "file=x", "content")
	resp := s.Request("HEAD", "/files/1", nil, "Authorization", apitest.Basic("alice", password))
	if resp.StatusCode != http.StatusOK || resp.ContentLength < 100 || s.Text(resp) != "" {
		t.Errorf("status %d, length %d", resp.StatusCode, resp.ContentLength)
	}
}
