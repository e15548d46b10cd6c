package stack

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/keys"
	"ferry/shared/service"
	"ferry/shared/users"
)

// stage is a function with only the ports that its main names, on the stand-ins for
// AWS. real has all ports to the same data, and its calls are not noted.
type stage struct {
	*testing.T
	real     *service.Service
	ports    *service.Service
	network  *network       // between ports and AWS
	worker   *worker.Worker // with ports
	keys     *lambda.Cloud  // of the Parameter Store
	cloud    boottest.Cloud
	endpoint api.Endpoint
	h        http.Handler  // of the endpoint
	ahead    time.Duration // of the clock
	lead     time.Duration // of the endpoint's clock before the others'
}

func newStage(t *testing.T, name string) *stage {
	t.Helper()
	s := &stage{T: t}
	s.real = boottest.Service(t, nil)
	s.real.Now = func() time.Time { return time.Now().Add(s.ahead) }
	s.real.PublicURL, s.real.Events = "https://files.example.com/v1", true
	p := service.New(s.real.Ports, s.real.Settings)
	p.Now = func() time.Time { return s.real.Now().Add(s.lead) }
	p.CountWait = time.Minute // as for any table that others use too
	p.Table, p.Blobs, p.Parts, p.Key = nil, nil, nil, keys.LinkKey{}
	s.ports, s.worker = p, &worker.Worker{Service: p, Providers: worker.Providers{}}
	s.open(name)
	p.Hasher, p.Tries = s.real.Hasher, s.real.Tries
	for _, e := range local.Endpoints() {
		if e.Name == name {
			s.serve(e)
		}
	}
	return s
}

// serve begins a function with an endpoint anew.
func (s *stage) serve(e api.Endpoint) { s.endpoint, s.h = e, lambda.With(s.ports).Handler(e) }

func (s *stage) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// do sends a request.
func (s *stage) do(method, path string, options ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(s.Context(), method, "https://gateway.example"+s.endpoint.Prefix+path, nil)
	for _, o := range options {
		o(r)
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return w
}

// mustFail sends a request that must get a server error.
func (s *stage) mustFail(method, path string, options ...func(*http.Request)) {
	s.Helper()
	if w := s.do(method, path, options...); w.Code < 500 {
		s.Fatalf("%s %s: status %d, want an error", method, path, w.Code)
	}
}

// must sends a request that must get this status, and returns the answer's headers.
func (s *stage) must(status int, method, path string, options ...func(*http.Request)) http.Header {
	s.Helper()
	w := s.do(method, path, options...)
	if w.Code != status {
		s.Fatalf("%s %s: status %d, want %d (%s)", method, path, w.Code, status, w.Header().Get("Ferry-Error"))
	}
	return w.Header()
}

func basic(name, password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(name, password) }
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func content(kind, text string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", kind)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
}

func form(values url.Values) func(*http.Request) {
	return content("application/x-www-form-urlencoded", values.Encode())
}

// bearer returns a bearer of alice.
func bearer() func(*http.Request) {
	return header("Authorization", "Bearer AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQFhbGljZQ")
}

// user adds a user with the password of alice.
func (s *stage) user(name string, change func(*users.User)) users.User {
	s.Helper()
	u := users.User{Name: name, State: users.Active, Password: s.hash()}
	if change != nil {
		change(&u)
	}
	s.check((&users.Service{Table: s.real.Table, Now: s.real.Now}).Add(s.Context(), u))
	return u
}

// hash returns the hash of alice's password.
func (s *stage) hash() string {
	s.Helper()
	hash, err := s.real.Hasher.Hash(s.Context(), boottest.Password)
	s.check(err)
	return hash
}

// send stores a file, with recipients or a receipt.
func (s *stage) send(owner string, sending files.Sending) {
	s.Helper()
	s.store(owner, sending, files.Part{Name: "abc", Body: strings.NewReader("abc"), Size: 3})
}

func (s *stage) store(owner string, sending files.Sending, part files.Part) {
	s.Helper()
	s.check(boottest.Store(s.Context(), s.real.Files(), files.By{User: owner}, sending, part))
}

// guesses sends wrong passwords until one is throttled, and the right one after the
// wait, which counts as a try until it succeeds.
func (s *stage) guesses(
	method, path string,
	login func(password string) func(*http.Request),
	options ...func(*http.Request),
) {
	s.Helper()
	for i := range 7 {
		if w := s.do(method, path, append(options, login(fmt.Sprintf("wrong-password-%d", i)))...); w.Code >= 500 {
			s.Fatalf("%s %s with a wrong password: status %d", method, path, w.Code)
		}
	}
	s.ahead += 10 * time.Minute
	w := s.do(method, path, append(options, login(boottest.Password))...)
	if w.Code == 401 || w.Code == 429 || w.Code >= 500 {
		s.Fatalf("the right password: status %d", w.Code)
	}
}

// withToken sends a request with an API token of alice, whose use is recorded even if its scope
// does not allow the request.
func (s *stage) withToken(method, path string, options ...func(*http.Request)) {
	s.Helper()
	token := s.token(identity.ScopeDownload)
	w := s.do(method, path, append(options, header("Authorization", "Bearer "+token))...)
	if w.Code != 200 && w.Code != 403 {
		s.Fatalf("with a token: status %d", w.Code)
	}
}

// token returns an API token of alice.
func (s *stage) token(scope identity.Scope) string {
	s.Helper()
	token, _, err := s.real.Tokens().Make(s.Context(), s.get("alice"), identity.APIToken{Name: "a", Scope: scope})
	s.check(err)
	return token
}

func asAlice(password string) func(*http.Request) { return basic("alice", password) }

// lose removes all objects of an area and leaves the records of their files.
func (s *stage) lose(area blob.Area) {
	s.Helper()
	objects, err := s.real.Blobs.List(s.Context(), area, "", blob.MaxList)
	s.check(err)
	for _, o := range objects {
		s.check(s.real.Blobs.Delete(s.Context(), area, o.Key))
	}
}

// authenticated sends a request with a bearer, then with others and with passwords.
func (s *stage) authenticated(method, path string) {
	s.Helper()
	s.must(200, method, path, bearer())
	s.must(401, method, path, header("Authorization", "Bearer none"))
	s.withToken(method, path)
	s.guesses(method, path, asAlice)
}
