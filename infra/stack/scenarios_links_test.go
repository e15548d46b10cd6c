package stack

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/bundle"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/users"
)

func download(s *stage, path string, area blob.Area, id int64) {
	token := s.real.Key.File(area, "alice", id)
	s.must(200, "GET", path+token)
	s.must(200, "GET", path+token, header("User-Agent", "curl/8")) // by a person
	s.guarded(path, area, id)
	moves := []func(context.Context, users.User, int64) (*files.Listed, error){s.lazy().Delete, s.lazy().Restore}
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

// redirecting has the endpoint redirect to files that are larger, or to none.
func (s *stage) redirecting(over int64) {
	s.ports.RedirectOver = over
	s.serve(s.endpoint)
}

// bundled takes a file out of a bundle, in both areas: its bytes follow the record later.
func (s *stage) bundled(path string, area blob.Area) {
	s.Helper()
	var archive bytes.Buffer
	w := bundle.NewWriter(&archive)
	s.check(w.Add(bundle.Entry{Path: "a.txt"}, make([]byte, 6<<20)))
	s.check(w.Close())
	s.store("alice", files.Sending{}, files.Part{
		Name:     "b.zip",
		Body:     &archive,
		Size:     -1,
		Contents: &files.Contents{Entries: 1},
	})
	alice := s.get("alice")
	person, id := header("User-Agent", "curl/8"), alice.LastFile
	take := func() {
		link := path + s.real.Key.File(area, "alice", id)
		s.must(200, "GET", link+"&entries", person)
		s.redirecting(1)
		s.network.faults["UploadPartCopy"] = refused(403, "AccessDenied")
		s.mustFail("GET", link+"&entry=a.txt", person) // the next goes on with what is there
		s.must(302, "GET", link+"&entry=a.txt", person)
		s.redirecting(0)
	}
	if area == blob.Files {
		take()
	}
	_, err := s.lazy().Delete(s.Context(), alice, id)
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
	service := s.real.Links()
	s.guard(area, id, 2, s.hash())
	token := s.real.Key.File(area, "alice", id)
	person := header("User-Agent", "curl/8")
	s.guesses("GET", path+token, func(password string) func(*http.Request) {
		return header(param.PasswordHeader, password)
	}, person)
	link, err := service.Find(s.Context(), area, token, "")
	s.check(err)
	claim, err := service.NewClaim(link)
	s.check(err)
	for range 2 {
		s.must(200, "GET", path+token+"&claim="+claim, person)
	}
	s.guard(area, id, 0, "")
}

// guard gives the own link of a file a limit and a password, or takes both away.
func (s *stage) guard(area blob.Area, id, limit int64, hash string) {
	s.Helper()
	f, err := s.lazy().Get(s.Context(), s.get("alice"), area, id)
	s.check(err)
	_, err = s.real.Links().Edit(s.Context(), s.lazy(), f, links.Own, true, links.Change{
		Limit:    &limit,
		Password: &hash,
	})
	s.check(err)
	s.ahead += time.Minute // past what a function remembers
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
	s.withToken("DELETE", "/files/1/links/x")
	s.guesses("DELETE", "/files/1/links/x", asAlice)
	s.must(201, "POST", "/files/1/links", bearer(), in(`{"m":"carla@example.com","c":"+393331234567","i":"hello"}`))
	s.must(201, "POST", "/files/1/links", bearer(), in(`{"downloads":3,"expires":"2d"}`))
	s.must(200, "PATCH", "/files/1/links/own", bearer(), in(`{"downloads":3,"password":"secret"}`))
	s.must(200, "DELETE", "/files/1/links/own", bearer())
	s.must(200, "POST", "/files/1/links/own/renew", bearer(), in(""))
	s.must(200, "PATCH", "/files/1", bearer(), in(`{"name":"b","expires":"12d"}`))
	s.overtake(1)
	s.must(200, "PATCH", "/files/1/links/own", bearer(), in(`{"downloads":4}`))
}

// overtake lets another request change a file of alice just before the next transaction.
func (s *stage) overtake(id int64) {
	s.network.faults["TransactWriteItems"] = func(r *http.Request, next aws.HTTPClient) (*http.Response, error) {
		name := "c"
		_, err := s.real.Files().Change(s.Context(), s.get("alice"), id, files.Edit{Name: &name})
		s.check(err)
		return next.Do(r)
	}
}

// request makes a request of alice, who has an address, and returns the token of its link.
func (s *stage) request() string {
	s.Helper()
	q := links.Request{MaxFiles: 50, MaxBytes: 1 << 20, Notify: files.Contact{To: "alice@example.com"}}
	made, err := s.real.Links().NewRequest(s.Context(), s.get("alice"), q)
	s.check(err)
	return s.real.Links().RequestToken(made)
}

func asking(s *stage) {
	s.authenticated("GET", "/requests")
	fields := content("application/json", `{"title":"a","files":3,"password":"`+boottest.Password+`","expires":"1d"}`)
	s.must(201, "POST", "/requests", bearer(), fields)
	all, err := s.real.Links().Requests(s.Context(), s.get("alice"))
	s.check(err)
	s.must(200, "PATCH", "/requests/"+all[0].ID, bearer(), fields)
	link := "/requests/in?k=" + s.real.Links().RequestToken(all[0])
	s.guesses("GET", link, func(password string) func(*http.Request) { return header(param.PasswordHeader, password) })
	s.must(204, "DELETE", "/requests/"+all[0].ID, bearer())
	link = "/requests/in?k=" + s.request()
	text := content("text/plain", "abc")
	for range 2 { // the second is added to the notice
		s.must(200, "PUT", link+"&file=a.txt", text)
	}
	guest := s.guest(link)
	for range 2 {
		s.must(200, "PUT", link+"&file=a.txt", text, guest, header("Idempotency-Key", "k"))
	}
	s.must(400, "POST", link, broken(), header("Idempotency-Key", "another"))
	s.must(200, "GET", link, guest)
	s.user("dave", func(u *users.User) { u.Quota = 1000 })
	made, err := s.real.Links().NewRequest(s.Context(), s.get("dave"), links.Request{})
	s.check(err)
	link = "/requests/in?file=a&k=" + s.real.Links().RequestToken(made)
	s.must(200, "PUT", link, text)
	for _, n := range []int{1001, 999} { // more than the quota, and than what is left of it
		s.must(413, "PUT", link, content("text/plain", strings.Repeat("a", n)))
	}
}

// guest returns the header of a new guest of a request.
func (s *stage) guest(link string) func(*http.Request) {
	s.Helper()
	return header("Ferry-Guest", s.must(200, "GET", link).Get("Ferry-Guest"))
}

// guestUploads runs two sessions of a guest.
func (s *stage) guestUploads(send func(path string)) {
	s.Helper()
	guest := header("Authorization", "Bearer "+s.request())
	secret := ""
	begin := func(options ...func(*http.Request)) string {
		body := content("application/json", `{"name":"a.txt","length":3}`)
		answer := s.must(201, "POST", "/uploads", append(options, guest, body)...)
		secret = answer.Get("Ferry-Guest")
		return s.session(answer)
	}
	own := begin()
	as := header("Ferry-Guest", secret)
	send(own)
	s.must(200, "GET", own, guest, as)
	other := begin(as)
	send(other)
	for _, path := range []string{own, other} { // the second is added to the notice
		s.must(200, "POST", path+"/complete", guest, as)
	}
	s.must(200, "GET", "/uploads", guest, as)
}
