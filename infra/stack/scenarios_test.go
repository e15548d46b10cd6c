package stack

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/users"
)

func scenarios() map[string]func(*stage) {
	return map[string]func(*stage){
		"authlogin":          authLogin,
		"authfirst":          authFirst,
		"authforget":         authForget,
		"authchange":         authChange,
		"oauthtoken":         oauthToken,
		"oauthrevoke":        oauthRevoke,
		"upload":             upload,
		"uploads":            uploads,
		"downloadlist":       func(s *stage) { s.authenticated("GET", "/download/list") },
		"downloadlistbackup": func(s *stage) { s.authenticated("GET", "/download/list/backup") },
		"downloadfile":       downloadFile,
		"downloadfilebackup": func(s *stage) { download(s, "/download/file/backup?z=", blob.Backup, 2) },
		"filesdelete":        filesDelete,
		"filesget":           filesGet,
		"filesrestore":       filesRestore,
		"me":                 me,
		"tokens":             tokens,
		"health":             func(s *stage) { s.must(200, "GET", "/health") },
		"openapi":            func(s *stage) { s.must(200, "GET", "/openapi.json") },
		"notificationsstop":  notificationsStop,
		"notfound":           func(s *stage) { s.must(404, "GET", "/nothing") },
		"relay":              relayAll,
		"email":              func(s *stage) { sendAll(s, files.Mail, "ann@example.com") },
		"sms":                func(s *stage) { sendAll(s, files.SMS, "+393331234567") },
		"feedback":           feedbackAll,
		"sweep":              sweepAll,
		"linkkey":            makeKey,
		"links":              sharing,
		"requests":           asking,
		"web":                pages,
	}
}

// The names that linkkey gets.
const (
	keyParameter = "/ferry/stack/link-key"
	tableName    = "stack-linkkey"
)

func makeKey(s *stage) {
	_, _, err := worker.LinkKeyHandler(s.keys, keyParameter, tableName, rand.Reader)(
		s.Context(),
		cfn.Event{RequestType: cfn.RequestCreate},
	)
	s.check(err)
}

// outdated adds a user whose hash is renewed at the next login.
func (s *stage) outdated() {
	s.Helper()
	weak, err := users.NewHasher(users.Params{Memory: 32, Time: 1, Threads: 1}, s.real.Random, s.real.Now)
	s.check(err)
	hash, err := weak.Hash(s.Context(), boottest.Password)
	s.check(err)
	s.user("carol", func(u *users.User) { u.Password = hash })
}

func authLogin(s *stage) {
	s.outdated()
	s.guesses("POST", "/auth/login", asAlice)
	s.must(200, "POST", "/auth/login", basic("carol", boottest.Password))
}

func oauthToken(s *stage) {
	s.outdated()
	as := func(name string) func(string) func(*http.Request) {
		return func(password string) func(*http.Request) {
			return form(url.Values{"grant_type": {"password"}, "username": {name}, "password": {password}})
		}
	}
	s.guesses("POST", "/oauth2/token", as("alice"))
	s.must(200, "POST", "/oauth2/token", as("carol")(boottest.Password))
}

func oauthRevoke(s *stage) {
	for _, token := range []string{"unknown", s.token(identity.ScopeAll)} {
		s.must(200, "POST", "/oauth2/revoke", form(url.Values{"token": {token}}))
	}
}

func me(s *stage) {
	s.authenticated("GET", "/me")
	change := content("application/json", `{"old":"`+boottest.Password+`","new":"another way to go"}`)
	s.must(204, "POST", "/me/password", bearer(), change)
}

func tokens(s *stage) {
	s.authenticated("GET", "/tokens")
	for range identity.MaxTokens + 1 { // the last one ends the first
		s.must(201, "POST", "/tokens", bearer(), content("application/json", `{"name":"a","scope":"login"}`))
	}
	all, err := s.real.Tokens().List(s.Context(), s.get("alice"))
	s.check(err)
	s.must(204, "DELETE", "/tokens/"+all[0].ID, bearer())
	s.must(204, "DELETE", "/tokens", basic("alice", boottest.Password))
}

func authFirst(s *stage) {
	s.guesses("POST", "/auth/first", asAlice)
	s.must(200, "POST", "/auth/first", basic("bob", boottest.Temporary))
}

func authForget(s *stage) {
	s.must(200, "GET", "/auth/forget?u=alice")
}

func authChange(s *stage) {
	first, err := s.real.Users().First(s.Context(), s.get("bob"))
	s.check(err)
	forgotten, _, err := s.real.Users().Forget(s.Context(), "alice", "192.0.2.1", s.real.PublicURL, "en")
	s.check(err)
	change := func(status int, k, p, z string) {
		s.must(status, "POST", "/auth/change", form(url.Values{"k": {k}, "p": {p}, "z": {z}}))
	}
	change(200, first, "", "a new way to go")
	change(401, forgotten, "00000000x", "")
	change(200, forgotten, s.pin(), "another way to go")
}

func (s *stage) get(name string) users.User {
	s.Helper()
	u, err := (&users.Service{Table: s.real.Table, Now: s.real.Now}).Get(s.Context(), name)
	s.check(err)
	return u
}

// pin returns the PIN that was mailed.
func (s *stage) pin() (pin string) {
	s.Helper()
	s.check(s.real.Table.Scan(s.Context(), func(item table.Item) error {
		var n notify.Notice
		if strings.HasPrefix(item.Key.PK, "outbox#") && item.Decode(&n) == nil && n.Kind == notify.PIN {
			pin = s.real.Key.PIN(n.Nonce)
		}
		return nil
	}))
	return pin
}

func upload(s *stage) {
	s.user("dave", func(u *users.User) { u.Quota = 1000 })
	text := content("text/plain", "abc")
	s.must(200, "POST", "/upload?file=a.txt&m=carla@example.com&i=hello&notify=1", bearer(), text)
	s.must(200, "POST", "/upload?file=a.txt&d=dave", bearer(), text)
	for _, n := range []int{1001, 999} { // more than the quota, and than what is left of it
		s.must(
			413,
			"POST",
			"/upload?file=a.txt",
			basic("dave", boottest.Password),
			content("text/plain", strings.Repeat("a", n)),
		)
	}
	for _, kind := range []string{"application/json", "text/plain"} {
		s.must(
			200,
			"POST",
			"/upload?file=a.txt",
			bearer(),
			text,
			header("Idempotency-Key", "k"),
			header("Accept", kind),
		)
	}
	s.user("fred", nil)
	s.check(s.real.Table.Write(s.Context(), table.Update(users.Key("fred")).Set("password", []string{"damaged"})))
	s.must(409, "POST", "/upload?file=a.txt&d=fred", bearer(), text)
	s.must(400, "PUT", "/upload?file=a.txt&d=nobody", bearer(), text, header("Idempotency-Key", "another"))
	s.must(400, "POST", "/upload", bearer(), broken())
	s.guesses("POST", "/upload?file=b.txt", asAlice, text)
	s.withToken("POST", "/upload?file=b.txt", text)
}

// later sets the clock of the endpoint ahead.
func (s *stage) later(ahead time.Duration) {
	s.Helper()
	s.lead = ahead
	s.serve(s.endpoint)
}

// broken makes a form whose first file is complete and whose second is cut off.
func broken() func(*http.Request) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for range 2 {
		part, _ := w.CreateFormFile("file", "a.txt") // a buffer never fails
		io.WriteString(part, "abc")
	}
	return content(w.FormDataContentType(), b.String())
}

// uploads runs a session that is completed, one that is aborted, one for another user
// with a quota, and one with a wrong checksum.
func uploads(s *stage) {
	s.user("dave", func(u *users.User) { u.Quota = 1000 })
	plan := func(fields string, status int, options ...func(*http.Request)) string {
		body := content("application/json", `{"name":"a.txt","length":3`+fields+`}`)
		return s.session(s.must(status, "POST", "/uploads", append(options, bearer(), body)...))
	}
	send := func(path string) {
		service := s.real.Files()
		it, err := service.Receiving(s.Context(), strings.TrimPrefix(path, "/uploads/"))
		s.check(err)
		_, err = service.WritePart(s.Context(), it, 1, strings.NewReader("abc"), nil)
		s.check(err)
	}
	numbers := content("application/json", `{"numbers":[1]}`)
	own := plan(`,"m":"carla@example.com","notify":true`, 201)
	s.must(200, "POST", own+"/parts", bearer(), numbers)
	send(own)
	s.must(200, "GET", own, bearer())
	for range 2 {
		s.must(200, "POST", own+"/complete", bearer())
	}
	another := plan(`,"d":"dave"`, 201)
	send(another)
	s.must(200, "POST", another+"/complete", bearer())
	s.must(204, "DELETE", plan(`,"d":"dave"`, 201), bearer())
	plan(`,"length":1000,"d":"dave"`, 413)
	s.later(45 * time.Minute) // the reservation of its room is renewed
	lapsing := plan(`,"d":"dave"`, 201)
	s.later(90 * time.Minute)
	s.must(200, "POST", lapsing+"/parts", basic("alice", boottest.Password), numbers)
	s.later(0)
	s.user("frank", func(u *users.User) { u.KeepDays = 1 })
	late := plan(`,"d":"frank"`, 201)
	send(late)
	s.later(72 * time.Hour) // sweeps are past the day in its key
	s.must(200, "POST", late+"/complete", basic("alice", boottest.Password))
	s.later(0)
	wrong := plan(fmt.Sprintf(`,"sha256":"%064d"`, 0), 201)
	send(wrong)
	s.must(400, "POST", wrong+"/complete", bearer())
	for range 2 {
		plan("", 201, header("Idempotency-Key", "k"))
	}
	plan(`,"d":"nobody"`, 400, header("Idempotency-Key", "another"))
	gone := plan("", 201) // swept away
	_, err := s.real.Blobs.Sweep(s.Context(), s.real.Now().Add(2*blob.PartsLife), nil)
	s.check(err)
	s.must(404, "POST", gone+"/complete", bearer())
	s.authenticated("GET", "/uploads")
	s.guestUploads(send)
}

// session returns the path of a session that has begun.
func (s *stage) session(answer http.Header) string {
	return strings.TrimPrefix(answer.Get("Location"), s.real.PublicURL)
}

// lazy returns a service that leaves the bytes of what it moves where they are.
func (s *stage) lazy() *files.Service {
	service := s.real.Files()
	service.Mover = func(context.Context, *files.Service, string, int64) error { return nil }
	return service
}

func filesDelete(s *stage) {
	s.authenticated("DELETE", "/files/1")
	s.network.faults["Invoke"] = refused(403, "")
	s.must(200, "DELETE", "/files/3", bearer())
	s.user("dave", func(u *users.User) { u.Quota = 1000 })
	s.send("dave", files.Sending{Tell: files.Contact{To: "dave@example.com"}})
	for _, path := range []string{"/files/1", "/files/1?area=backup", "/files/1?area=backup"} { // the last is a repetition
		s.must(200, "DELETE", path, basic("dave", boottest.Password))
	}
}

func filesGet(s *stage) {
	s.authenticated("GET", "/files/1")
	s.must(200, "GET", "/files/2?area=backup", bearer())
	s.send("alice", files.Sending{Recipients: []files.Message{{Channel: files.Mail, To: "carla@example.com"}}})
	s.must(200, "GET", "/files/4", bearer())
}

func filesRestore(s *stage) {
	s.authenticated("POST", "/files/2/restore")
	remove := func() {
		_, err := s.real.Files().Delete(s.Context(), s.get("alice"), 3)
		s.check(err)
	}
	remove()
	s.network.faults["TransactWriteItems"] = func(r *http.Request, next aws.HTTPClient) (*http.Response, error) {
		_, err := s.real.Files().Restore(s.Context(), s.get("alice"), 3) // by another request
		s.check(err)
		return next.Do(r)
	}
	s.must(404, "POST", "/files/3/restore", bearer())
	remove()
	s.network.faults["Invoke"] = refused(403, "")
	s.must(200, "POST", "/files/3/restore", bearer())
}

func notificationsStop(s *stage) {
	path := "/notifications/stop?t=" + s.real.Key.Stop("ann@example.com")
	s.must(200, "GET", path)
	for range 2 { // undoing then leaves the bounce
		s.must(200, "POST", path)
		s.must(200, "POST", path, form(url.Values{"undo": {"1"}}))
		s.check(s.real.Table.Write(
			s.Context(),
			notify.Suppress("ann@example.com", notify.AddressBounced, "", s.real.Now()),
		))
	}
}

func sweepAll(s *stage) {
	s.user("dave", func(u *users.User) { u.Quota = 1000 })
	s.user("erin", nil)
	for _, name := range []string{"dave", "erin", "alice"} {
		s.send(name, files.Sending{})
	}
	s.send("alice", files.Sending{
		Tell:       files.Contact{To: "alice@example.com"},
		Recipients: []files.Message{{Channel: files.Mail, To: "carla@example.com"}},
	})
	plan := files.Plan{Owner: "dave", Name: "x", Length: 10} // nobody goes on with it, which leaves its reservation
	_, err := s.real.Files().BeginSession(s.Context(), files.By{User: "dave"}, plan, nil)
	s.check(err)
	users := &users.Service{Table: s.real.Table, Now: s.real.Now}
	s.check(users.Disable(s.Context(), "erin"))
	s.check(users.Remove(s.Context(), "erin")) // while an upload was under way
	leftover := fmt.Sprintf("D0-2020-01-01/1-%022d-zoe", 1)
	_, err = s.real.Blobs.Create(s.Context(), blob.Files, leftover, strings.NewReader(""), 0)
	s.check(err)
	s.check(s.real.Table.Write(s.Context(), notify.Notice{
		Kind:    notify.Link,
		Channel: files.SMS,
	}.Op(s.real.Now(), "late")))
	for _, area := range blob.Areas() { // a crash leaves its parts
		_, err := s.real.Parts.Begin(s.Context(), area, "zoe/1-parts", blob.Layout{Length: 3, PartSize: 3})
		s.check(err)
	}
	s.sweep(0)  // it is not old enough to be a leftover
	s.sweep(31) // the mail's link is dead by then
	s.send("alice", files.Sending{})
	s.sweep(62)
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second) // too little, so it calls itself
	defer cancel()
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{InvokedFunctionArn: mover})
	_, err = worker.SweeperHandler(s.worker)(ctx, lambda.SweepEvent{})
	s.check(err)
	s.sweep(200)
	old := []table.Op{table.Delete(table.Key{PK: "format", SK: "format"})}
	for user, err := range table.Each(s.Context(), s.real.Table, table.Query{PK: table.UserList, Limit: 100}) {
		s.check(err)
		old = append(old, table.Delete(user.Key))
	}
	s.check(s.real.Table.Write(s.Context(), old...))
	s.check(table.CheckFormat(s.Context(), s.ports.Table)) // as at the first start in a new stack
}

// sweep sweeps as if a number of days had passed.
func (s *stage) sweep(days int) {
	s.Helper()
	s.ahead = time.Duration(days) * 24 * time.Hour
	if r, err := worker.SweeperHandler(s.worker)(s.Context(), lambda.SweepEvent{}); err != nil || !r.Complete {
		s.Fatalf("after %d days: %+v, %v", days, r, err)
	}
}
