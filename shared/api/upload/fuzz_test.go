package upload

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"ferry/shared/api"
	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/service"
	"ferry/shared/users"
	"ferry/shared/wire"
)

func isControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

func FuzzFilesOfABodyAreSafe(f *testing.F) {
	const boundary = "multipart/form-data; boundary=B"
	for _, body := range []string{
		"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nx\r\n--B--\r\n",
		"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../%22\u202e.exe\"\r\n\r\n\r\n--B\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n--B--",
		"--B\r\nContent-Disposition: form-data; filename=\"\"\r\n\r\n--B", "--B\r\nContent-Disposition: \"\r\n\r\n--B--", "--B--", "",
		strings.Repeat("--B\r\n\r\n\r\n", maxParts+2),
	} {
		f.Add(boundary, "", []byte(body))
	}
	f.Add("text/plain", "a\r\nb", []byte("x"))
	f.Add("multipart/mixed; boundary=B", "a", []byte("--B--"))
	f.Add("multipart/form-data", "", []byte("--B--"))
	f.Fuzz(func(t *testing.T, kind, name string, body []byte) {
		r := httptest.NewRequest("POST", "/v1/upload", bytes.NewReader(body))
		r.Header.Set("Content-Type", kind)
		in, _, err := open(r, params{name: wire.CleanFileName(name)})
		total := 0
		for n := 0; err == nil; n++ {
			var part *files.Part
			if part, err = in(); part == nil {
				break
			}
			if n == maxParts {
				t.Fatalf("%q has more than %d files", body, maxParts)
			}
			if part.Name == "" ||
				part.Name != wire.CleanFileName(part.Name) ||
				strings.ContainsFunc(part.Name+part.Type, isControl) {
				t.Errorf("a file is named %q, of type %q", part.Name, part.Type)
			}
			content, broken := io.ReadAll(part.Body)
			if total += len(content); total > len(body) {
				t.Errorf("%d bytes have %d bytes of files", len(body), total)
			}
			if broken != nil {
				err = bodyError(broken)
			}
		}
		if err != nil && fault.Of(err) == nil {
			t.Errorf("%q with %q is answered with 500: %v", kind, body, err)
		}
	})
}

func FuzzASessionIsPlannedOrRefused(f *testing.F) {
	for _, body := range []string{
		`{"name":"film.mp4","length":5368709120,"type":"video/mp4","partSize":5242880}`, `{"name":"a/../b\u202e","length":0}`,
		`{"name":"a","length":1,"c":"+393401234567","m":"ann@example.com","i":"hello","lang":"it","notify":true}`,
		`{"name":"a","length":1,"m":["ann@example.com","bob@example.com"],"c":[]}`, `{"name":"a","length":1,"m":[1],"c":null}`,
		`{"name":"a","length":1,"d":"Bob","sha256":"` + strings.Repeat(
			"0f",
			32,
		) + `"}`, `{"name":"a","length":9223372036854775807,"partSize":1}`,
		`{"name":"a","length":1,"type":"a/b\r\nX: y"}`, `{"name":"a","length":1,"expires":"7d","downloads":3,"password":"secret"}`, `{"name":"a","length":1,"expires":"2100-01-01T00:00:00Z","downloads":-1}`, `{"name":"a","length":null}`, `{"nAme":"0"}`, `{"name":"a","length":1} {}`, `[]`, `{"name":`, "",
	} {
		f.Add([]byte(body))
	}
	hasher, err := users.NewHasher(users.Params{Memory: 32, Time: 1, Threads: 1}, rand.Reader, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	ports := service.Ports{Hasher: hasher, Now: time.Now, Parts: new(disk.Store)}
	h := handler{ports: &api.Ports{Service: service.New(ports, service.Settings{
		PublicURL:   "https://files.example.com/v1",
		PhoneRegion: "IT",
	})}}
	u := identity.Identity{User: users.User{Name: "alice", Email: "alice@example.com"}, Scope: identity.ScopeAccount}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest("POST", "/v1/uploads", bytes.NewReader(body))
		var in, again wire.NewSession
		err := api.JSON(r, &in, false)
		var p files.Plan
		if err == nil {
			p, err = h.plan(r, u, in)
		}
		if err != nil {
			if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.TooLarge) {
				t.Errorf("%q is answered with %v", body, err)
			}
			return
		}
		if p.Name != wire.CleanFileName(p.Name) || p.Name == "" || strings.ContainsFunc(p.Name+p.Type, isControl) {
			t.Errorf("%q plans %q of type %q", body, p.Name, p.Type)
		}
		header := http.Header{"Content-Type": {p.Type}, "Content-Disposition": {wire.Attachment(p.Name)}}
		if w := new(strings.Builder); header.Write(w) != nil || strings.Count(w.String(), "\r\n") != 2 {
			t.Errorf("%q makes the headers %q", body, w)
		}
		if owner, ok := users.CanonicalName(p.Owner); !ok ||
			owner != p.Owner ||
			p.Streamed != (p.Length < 0) ||
			p.Length > blob.S3Limits().MaxLength() ||
			p.PartSize < 0 || p.PartSize > blob.MaxPartSize || p.SHA256 != nil && len(p.SHA256) != 32 {
			t.Errorf("%q plans %+v", body, p)
		}
		text, err := json.Marshal(in)
		if sent := bytes.ReplaceAll(text, []byte(`"length":null,`), nil); err == nil { // null is refused
			err = api.JSON(httptest.NewRequest("POST", "/", bytes.NewReader(sent)), &again, false)
		}
		if same, _ := json.Marshal(again); err != nil || !bytes.Equal(same, text) {
			t.Errorf("%q is %s, and then %s, %v", body, text, same, err)
		}
	})
}

func TestADigestIsReadOrRefused(t *testing.T) {
	t.Parallel()
	const good = "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:"
	for header, want := range map[string]int{ // bytes of a SHA-256, or -1
		good: 32, "sha-512=:AAAA:, " + good: 32, good + ";x=1": 32, "sha-512=:AAAA:": 0, "": 0,
		"sha-256=abc": -1, "sha-256=::": -1, "sha-256=:abc:": -1, "sha-256=:AAAA:": -1, "sha-256=": -1,
		"sha-256": -1, "x": -1, good + ",": -1, strings.TrimSuffix(good, ":"): -1,
	} {
		sum, err := reprDigest(header)
		if len(sum) != max(want, 0) || fault.Is(err, fault.Invalid) != (want < 0) {
			t.Errorf("%q gives %x, %v", header, sum, err)
		}
	}
}

func FuzzDigestIsReadOrRefused(f *testing.F) {
	const good = "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:"
	for _, seed := range []string{
		"", good, good + ";p=1", "sha-512=:AAAA:," + good, "sha-256=::", "sha-256=:AAAA", "sha-256", ",,;=:",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		sum, err := reprDigest(header)
		switch {
		case err != nil && (!fault.Is(err, fault.Invalid) || sum != nil):
			t.Errorf("%q gives %x and %v", header, sum, err)
		case err == nil && sum != nil && len(sum) != 32:
			t.Errorf("%q gives %d bytes", header, len(sum))
		case err == nil && sum == nil && strings.HasPrefix(header, "sha-256="):
			t.Errorf("%q is ignored", header)
		}
	})
}
