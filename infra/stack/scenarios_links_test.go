package stack

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/bundle"
	"ferry/shared/files"
	"ferry/shared/links"
)

func download(s *stage, path string, area blob.Area, id int64) {
	token := s.real.Key.File(area, "alice", id)
	s.must(200, "GET", path+token)
	s.must(200, "GET", path+token, header("User-Agent", "curl/8")) // by a person
	s.must(401, "GET", path+"unknown")
	s.ports.RedirectOver = 1
	s.h = lambda.With(s.ports).Handler(s.endpoint())
	s.must(302, "GET", path+token, header("User-Agent", "curl/8"))
	s.ports.RedirectOver = 0
	s.h = lambda.With(s.ports).Handler(s.endpoint())
	s.guarded(path, area, id)
	moves := []func(context.Context, auth.User, int64) (*files.Listed, error){s.lazy().Delete, s.lazy().Restore}
	if area == blob.Backup {
		slices.Reverse(moves)
	}
	for _, move := range moves { // the bytes follow later
		_, err := move(s.Context(), s.get("alice"), id)
		s.check(err)
	}
	s.must(200, "GET", path+token)
	s.bundled(path, area)
	s.lose(area)
	s.mustFail("GET", path+token, header("User-Agent", "curl/8"))
}

// bundled takes a file out of a bundle, in both areas: its bytes follow the record later.
func (s *stage) bundled(path string, area blob.Area) {
	s.Helper()
	var archive bytes.Buffer
	w := bundle.NewWriter(&archive)
	s.check(w.Add(bundle.Entry{Path: "a.txt"}, make([]byte, 6<<20)))
	s.check(w.Add(bundle.Entry{Path: "small.txt"}, []byte("hello")))
	s.check(w.Close())
	alice := s.get("alice")
	up, err := file.Service(s.real).Begin(s.Context(), "alice", files.ByOf(auth.Identity{User: alice}), -1, files.Sending{})
	s.check(err)
	s.check(up.Add(s.Context(), files.Part{Name: "b.zip", Body: &archive, Size: -1, Entries: func() int { return 2 }}))
	_, err = up.Commit(s.Context(), 1)
	s.check(err)
	person, id := header("User-Agent", "curl/8"), s.get("alice").LastFile
	take := func() {
		link := path + s.real.Key.File(area, "alice", id)
		s.must(200, "GET", link+"&entries", person)
		s.must(200, "GET", link+"&entry=small.txt", person)
		s.ports.RedirectOver = 1
		s.h = lambda.With(s.ports).Handler(s.endpoint())
		s.network.faults["UploadPartCopy"] = refused(403, "AccessDenied")
		s.mustFail("GET", link+"&entry=a.txt", person) // the next goes on with what is there
		s.must(302, "GET", link+"&entry=a.txt", person)
		s.must(302, "GET", link+"&entry=small.txt", person)
		s.ports.RedirectOver = 0
		s.h = lambda.With(s.ports).Handler(s.endpoint())
	}
	if area == blob.Files {
		take()
	}
	_, err = s.lazy().Delete(s.Context(), alice, id)
	s.check(err)
	if area == blob.Backup {
		take() // from the other bucket
	}
	s.check(s.lazy().MoveBytes(s.Context(), "alice", id))
	if area == blob.Files {
		_, err = s.lazy().Restore(s.Context(), alice, id)
		s.check(err)
	}
	take()
}

// guarded takes a download of a link with a limit and a password, and takes both away again.
func (s *stage) guarded(path string, area blob.Area, id int64) {
	s.Helper()
	service := file.Links(s.real)
	f, err := s.lazy().Get(s.Context(), s.get("alice"), area, id)
	s.check(err)
	hash, err := s.real.Hasher.Hash(s.Context(), boottest.Password)
	s.check(err)
	edit := func(limit int64, hash string) {
		_, err = service.Edit(s.Context(), s.lazy(), f, links.Own, true, links.Change{Limit: &limit, Password: &hash})
		s.check(err)
	}
	edit(2, hash)
	s.ahead += time.Minute // past what a function remembers
	token := s.real.Key.File(area, "alice", id)
	person := header("User-Agent", "curl/8")
	s.must(401, "GET", path+token, person)
	s.guesses("GET", path+token, func(password string) func(*http.Request) { return header(file.PasswordHeader, password) }, person)
	link, err := service.Find(s.Context(), area, token)
	s.check(err)
	claim, err := service.NewClaim(link)
	s.check(err)
	for range 2 {
		s.must(200, "GET", path+token+"&claim="+claim, person)
	}
	edit(0, "")
}

// downloadFile also downloads a file whose uploader wants a notice of its first download.
func downloadFile(s *stage) {
	s.send("alice", files.Sending{Tell: files.Contact{To: "alice@example.com"}})
	for range 2 {
		s.must(200, "GET", "/download/file?k="+s.real.Key.File(blob.Files, "alice", 4), header("User-Agent", "curl/8"))
	}
	download(s, "/download/file?k=", blob.Files, 1)
}

func sharing(s *stage) {
	in := func(body string) func(*http.Request) { return content("application/json", body) }
	s.must(401, "PATCH", "/files/1", header("Authorization", "Bearer none"), in("{}"))
	s.withToken("DELETE", "/files/1/links/x")
	s.guesses("DELETE", "/files/1/links/x", asAlice)
	s.must(201, "POST", "/files/1/links", bearer(), in(`{"m":"carla@example.com","c":"+393331234567","i":"hello"}`))
	for range links.MaxLive - 3 {
		s.must(201, "POST", "/files/1/links", bearer(), in(`{"downloads":3,"expires":"2d"}`))
	}
	s.must(409, "POST", "/files/1/links", bearer(), in(`{"password":"secret"}`))
	s.must(200, "PATCH", "/files/1/links/own", bearer(), in(`{"downloads":3,"password":"secret"}`))
	s.must(200, "DELETE", "/files/1/links/own", bearer())
	s.must(200, "POST", "/files/1/links/own/renew", bearer(), in(""))
	s.must(200, "PATCH", "/files/1", bearer(), in(`{"name":"b","expires":"12d"}`))
	s.network.faults["TransactWriteItems"] = func(r *http.Request, next aws.HTTPClient) (*http.Response, error) {
		name := "c"
		_, err := file.Service(s.real).Change(s.Context(), s.get("alice"), 1, files.Edit{Name: &name}) // by another request
		s.check(err)
		return next.Do(r)
	}
	s.must(200, "PATCH", "/files/1/links/own", bearer(), in(`{"downloads":4}`))
}
