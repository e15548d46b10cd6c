// Package apitest starts the whole service for tests that speak HTTP to it: in
// this process on real stores in a temporary folder or, with the build tag stack,
// as deployed functions. Only tests may import it. Start reading with New.
package apitest

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/local"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// Clock is a clock that only tests move, so that a busy machine changes nothing.
// It keeps the monotonic part that an envelope's time shows.
type Clock struct {
	begun time.Time        // the real time at the start; if zero, the clock runs, as a stack's does
	ahead atomic.Int64     // how far the clock is ahead of begun
	needs func(why string) // skips a test in which the clock cannot be moved
}

// Now returns the time of the start plus all advances.
func (c *Clock) Now() time.Time {
	if c.begun.IsZero() {
		return time.Now()
	}
	return c.begun.Add(time.Duration(c.ahead.Load()))
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.needs("it moves the clock")
	c.ahead.Add(int64(d))
}

// Server is a running service.
type Server struct {
	testing.TB
	Base    string // address with prefix
	Root    string // address without prefix
	Dir     string // its data
	Clock   *Clock
	Data    *local.Data
	Service *local.Service
	Users   *users.Service
	HTTP    *httptest.Server
	Calls   *Calls // to the stores, by requests
	Log     *Log

	Close    func() // ends the service before the test does, so that it can be opened again
	contract contract
	options  local.ServiceOptions
}

// Option changes how the service is started.
type Option func(*service.Settings, *local.ServiceOptions)

// Cheap returns password costs for tests.
func Cheap() users.Params { return users.Params{Memory: 64, Time: 1, Threads: 1} }

// New starts a service, which ends with the test. Its background work does not
// run: call Deliver and Service.Sweep. With the build tag stack the functions'
// real programs answer.
func New(t testing.TB, options ...Option) *Server {
	t.Helper()
	if s := remote(t, len(options)); s != nil {
		return s
	}
	return Open(t, t.TempDir(), options...)
}

// Handler passes requests to another handler, which a test may replace while clients are connected.
type Handler struct {
	now atomic.Pointer[http.HandlerFunc]
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*h.now.Load())(w, r) }

// Swap replaces the handler that answers, and returns the previous one.
func (h *Handler) Swap(f http.HandlerFunc) (before *http.HandlerFunc) { return h.now.Swap(&f) }

// Open starts a service on the data of a folder.
func Open(t testing.TB, dir string, options ...Option) *Server {
	t.Helper()
	unstarted := httptest.NewUnstartedServer(nil)
	root := "http://" + unstarted.Listener.Addr().String()
	settings := service.Settings{PublicURL: root + wire.Prefix}
	settings.Retention.KeepDays, settings.Retention.BackupDays = 30, 90
	settings.Notices = notify.Limits{PerHour: 1000, PerDay: 1000, PerRecipient: 1000}
	so := local.ServiceOptions{
		From:      "Ferry <ferry@localhost>",
		ShowInbox: true,
		Grace:     time.Hour,
	}
	for _, o := range options {
		o(&settings, &so)
	}
	needs, log := func(string) {}, &Log{out: t.Output()}
	clock, calls := &Clock{
		begun: time.Now(),
		needs: needs,
	}, &Calls{count: map[string]int{}, before: map[string]func() error{}, needs: needs}
	data, err := local.Open(dir, local.Options{
		Hash:   Cheap(),
		Now:    clock.Now,
		NoSync: true,
		Log:    slog.New(slog.NewTextHandler(log, nil)),
	})
	check(t, "opening the data", err)
	data.Ports.Table = countedTable{data.Table, calls}
	data.Ports.Blobs = countedStore{data.Disk, calls}
	data.Ports.Parts = countedParts{data.Disk, calls}
	s, err := local.NewService(data.Ports, settings, so)
	check(t, "making the service", err)
	handler := &Handler{}
	handler.Swap(http.HandlerFunc(s.Handler().ServeHTTP))
	unstarted.Config.Handler = handler
	unstarted.Start()
	end := sync.OnceFunc(func() {
		unstarted.Close()
		s.Links().Flush(context.Background())
		if err := data.Close(); err != nil {
			t.Errorf("closing the data: %v", err)
		}
	})
	t.Cleanup(end)
	server := &Server{
		TB:       t,
		Base:     settings.PublicURL,
		Root:     root,
		Dir:      dir,
		Clock:    clock,
		Data:     data,
		Service:  s,
		Users:    &users.Service{Table: data.Table, Now: clock.Now},
		HTTP:     unstarted,
		Calls:    calls,
		Log:      log,
		Close:    end,
		contract: described(t),
		options:  so,
	}
	calls.settle = func() { server.Service.Links().Flush(context.Background()) }
	return server
}

// check ends the test on an error.
func check(t testing.TB, doing string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", doing, err)
	}
}

// CountAtOnce makes each answer count the use of its link before it ends, as in the cloud. Without
// it, that happens a moment later.
func (s *Server) CountAtOnce() {
	s.Data.Ports.CountWait = time.Hour
	s.Restart()
}

// Restart makes the service again, on ports that a test has changed.
func (s *Server) Restart() {
	again, err := local.NewService(s.Data.Ports, s.Service.Settings, s.options)
	check(s.TB, "making the service", err)
	s.Service, s.HTTP.Config.Handler = again, again.Handler()
}

// InStack reports whether the service is a deployed stack.
func (s *Server) InStack() bool { return s.HTTP == nil }

// InProcess skips the test on a deployed stack.
func (s *Server) InProcess(why string) {
	s.Helper()
	if s.InStack() {
		s.Skip(why)
	}
}

// AddUser adds an active user with a password; change may alter the user first.
func (s *Server) AddUser(name, password string, change ...func(*users.User)) {
	s.Helper()
	hash, err := s.Data.Ports.Hasher.Hash(s.Context(), password)
	check(s.TB, "hashing a password", err)
	u := users.User{
		Name:     name,
		Password: hash,
		State:    users.Active,
		Email:    name + "@example.com",
		Lang:     "en",
	}
	for _, c := range change {
		c(&u)
	}
	check(s.TB, "adding user "+name, s.Users.Add(s.Context(), u))
}

// Deliver sends the notices that are due.
func (s *Server) Deliver() (sent int) {
	s.Helper()
	sender, before := s.Service.Sender, len(s.Log.String())
	for n, err := range notify.Waiting(context.Background(), sender.Table) {
		if err == nil {
			_, err = sender.Handle(context.Background(), n.Key())
			if err != nil && s.InStack() { // retry, as the queue would: the table's answer can get lost
				_, err = sender.Handle(context.Background(), n.Key())
			}
		}
		check(s.TB, "sending notices", err)
	}
	return strings.Count(s.Log.String()[before:], "notice sent")
}

// Mail delivers what waits, and returns the newest message of the inbox.
func (s *Server) Mail() string {
	s.Helper()
	s.Deliver()
	all, err := s.Service.Inbox.List(s.Context(), 1)
	check(s.TB, "reading the inbox", err)
	if len(all) == 0 {
		s.Fatal("the inbox is empty")
	}
	return all[0].Text
}

// Request sends a request to a path below Base, or to a whole URL. Headers are pairs.
func (s *Server) Request(
	method, path string,
	body io.Reader,
	headers ...string,
) *http.Response {
	s.Helper()
	if strings.HasPrefix(path, "/") {
		path = s.Base + path
	}
	r, err := http.NewRequestWithContext(s.Context(), method, path, body)
	check(s.TB, "making a request", err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return s.Do(r)
}

// Do sends a request without following redirects, reads the whole response and
// checks it against the description of the interface.
func (s *Server) Do(r *http.Request) *http.Response {
	s.Helper()
	if s.InStack() &&
		strings.HasSuffix(r.URL.Path, "/upload") &&
		r.Header.Get("Idempotency-Key") == "" {
		r.Header.Set("Idempotency-Key", rand.Text()) // so that it may be repeated
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	resp, err := client.Do(r)
	for tries := 1; tries < maxTries && s.tryAgain(r, resp, err); tries++ {
		if err == nil {
			resp.Body.Close()
		}
		time.Sleep(time.Second) // as Retry-After says
		again := r.Clone(s.Context())
		if r.GetBody != nil {
			again.Body, err = r.GetBody()
			check(s.TB, "repeating a body", err)
		}
		resp, err = client.Do(again)
	}
	check(s.TB, r.Method+" "+r.URL.Path, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check(s.TB, r.Method+" "+r.URL.Path+": reading the response", err)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err := s.contract.check(r, resp, body); err != nil {
		s.Errorf("%v\n%s", err, body)
	}
	return resp
}

// maxTries is how often to ask a service that is too busy to answer.
const maxTries = 300

// tryAgain reports whether a client of a stack, which has few processors, would repeat a request.
// The stack may be busy and say that nothing was done. If there is no answer, or another 503, only
// a request that does no harm twice is repeated. In this process the service never gives up because
// others are faster, as its clock stands still.
func (s *Server) tryAgain(r *http.Request, resp *http.Response, err error) bool {
	again := r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
	if !s.InStack() ||
		!again ||
		err == nil && resp.StatusCode != http.StatusServiceUnavailable {
		return false
	}
	if err == nil {
		why := resp.Header.Get("Ferry-Error")
		if strings.HasSuffix(why, "busy; try again") ||
			strings.HasSuffix(why, "right now; try again") {
			return true
		}
	}
	return r.Header.Get("Idempotency-Key") != "" ||
		r.Method != http.MethodPost && r.Method != http.MethodPut
}

// Basic returns the value of an Authorization header.
func Basic(name, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(name, password)
	return r.Header.Get("Authorization")
}

// Envelope is the body of a response, read leniently.
type Envelope struct {
	Status                                           int
	Description, APIVer, User, Bearer, LinkURL, Time string
	Files                                            []File
}

// File is a file of an Envelope.
type File struct {
	ID, Length, Modified int64
	Name, LinkURL        string
}

// Text reads a response's body.
func (s *Server) Text(resp *http.Response) string {
	s.Helper()
	b, err := io.ReadAll(resp.Body)
	check(s.TB, "reading the body", err)
	return string(b)
}

// Login returns a bearer.
func (s *Server) Login(name, password string) string {
	s.Helper()
	return s.Send(
		"POST /auth/login",
		"",
		"Authorization",
		Basic(name, password),
	).Want(200).Bearer
}
