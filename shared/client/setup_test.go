package client_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/client"
)

const password = "a long password"

// quick returns a Retry with short waits, for tests.
func quick() client.Retry {
	return client.Retry{Tries: 10, Min: time.Millisecond, Max: 5 * time.Millisecond}
}

// start starts a service with the user ann, and returns it and her client.
func start(t *testing.T, change ...func(*client.Options)) (*apitest.Server, *client.Client) {
	t.Helper()
	s := apitest.New(t)
	s.AddUser("ann", password)
	return s, connect(t, s, "ann", change...)
}

func connect(t *testing.T, s *apitest.Server, user string, change ...func(*client.Options)) *client.Client {
	t.Helper()
	o := client.Options{URL: s.Base, User: user, Password: password, Retry: quick()}
	for _, c := range change {
		c(&o)
	}
	return newClient(t, o)
}

func newClient(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(o)
	must(t, err)
	return c
}

// against returns a client of a service that answers like this.
func against(t *testing.T, answer http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return newClient(t, client.Options{URL: s.URL, User: "x", Password: "y", Retry: quick()})
}

func bytesOf(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(b) // never fails
	return b
}

// cutting makes connections that break after up to most bytes in a direction,
// until it has broken enough of them.
type cutting struct {
	most int64

	mu     sync.Mutex
	random *rand.Rand
	left   int
	cuts   int
}

func cutter(most int64, times int) *cutting {
	return &cutting{most: most, left: times, random: rand.New(rand.NewPCG(7, 7))}
}

func (c *cutting) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: c.dial}}
}

func (c *cutting) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return conn, nil
	}
	c.left--
	return &cutConn{Conn: conn, cutting: c, left: c.random.Int64N(c.most)}, nil
}

var errCut = errors.New("the line was cut")

type cutConn struct {
	net.Conn
	cutting *cutting

	mu   sync.Mutex
	left int64
	cut  bool
}

func (c *cutConn) spend(n int) (allowed int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int64(n) <= c.left {
		c.left -= int64(n)
		return n, nil
	}
	if !c.cut {
		c.cut = true
		c.cutting.mu.Lock()
		c.cutting.cuts++
		c.cutting.mu.Unlock()
		c.Conn.Close()
	}
	return 0, errCut
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		return n, err
	}
	return c.spend(n)
}

func (c *cutConn) Write(b []byte) (int, error) {
	if _, err := c.spend(len(b)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// failed returns the error of a call that returns something else too.
func failed[T any](_ T, err error) error { return err }

// wantStatus checks what the service answered to a call.
func wantStatus(t *testing.T, what string, err error, status int) {
	t.Helper()
	if client.StatusOf(err) != status {
		t.Errorf("%s: %v, want the status %d", what, err, status)
	}
}
