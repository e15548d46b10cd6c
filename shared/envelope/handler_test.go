package envelope_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// handler returns a handler that logs to a buffer.
func handler(o envelope.Outlet, log io.Writer, f envelope.HandlerFunc) http.Handler {
	o.Now, o.Log = time.Now, slog.New(slog.NewTextHandler(log, nil))
	if o.Base == nil {
		o.Base = func(context.Context) string { return "" }
	}
	return o.Handler(f)
}

// handle lets f answer a request, and returns the response and the log.
func handle(
	o envelope.Outlet,
	f envelope.HandlerFunc,
	change ...func(*http.Request),
) (*httptest.ResponseRecorder, string) {
	var log strings.Builder
	rec, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/path?query=secret", nil)
	for _, c := range change {
		c(r)
	}
	handler(o, &log, f).ServeHTTP(rec, r)
	return rec, log.String()
}

func TestEachKindOfErrorHasItsResponse(t *testing.T) {
	t.Parallel()
	const detail, rows = "a sentence on what is wrong", `
		400 | INFO  | DETAIL | a fault with a cause                         |
		400 | INFO  | DETAIL | a bad parameter                              | Ferry-Parameter: c
		400 | INFO  | a??b: ? | characters that a header must not have      |
		401 | INFO  | DETAIL | no credential                                | WWW-Authenticate: Basic realm="ferry", charset="UTF-8"
		405 | INFO  | DETAIL | a wrong method                               | Allow: GET, PUT
		409 | INFO  | DETAIL | a wrapped fault                              |
		413 | INFO  | the body is larger than 5 bytes | too large a body    |
		415 | INFO  | DETAIL | an unsupported coding                        | Accept-Encoding: identity
		429 | INFO  | DETAIL; try again in 2 seconds | too many             | Retry-After: 2
		500 | ERROR |        | an unknown error                             |
		500 | ERROR |        | an internal fault                            |
		500 | ERROR | DETAIL | lost bytes                                   |
		503 | WARN  | the service is busy; try again | a busy table                        | Retry-After: 1
		503 | WARN  | the service is busy; try again | no file descriptor                  | Retry-After: 1
		503 | WARN  | the service is busy; try again | no file descriptor on the machine   | Retry-After: 1
		503 | ERROR | the request took too long; try again | a deadline                    | Retry-After: 1
		503 | WARN  | DETAIL | too many uploads                             | Retry-After: 1
		503 | ERROR | DETAIL | a dead table                                 |
		507 | WARN  | the service has no room left for this; nothing was stored | a full table |
		507 | WARN  | the service has no room left for this; nothing was stored | a full store |`
	cause := errors.New("the cause")
	errs := map[string]error{
		"a fault with a cause":                   &fault.Fault{Kind: fault.Invalid, Detail: detail, Cause: cause},
		"a bad parameter":                        fault.Parameter("c", detail),
		"characters that a header must not have": fault.New(fault.Invalid, "a\r\nb: é"),
		"no credential":                          fault.New(fault.Unauthorized, detail),
		"a wrong method": &fault.Fault{
			Kind:   fault.MethodNotAllowed,
			Detail: detail,
			Allow:  []string{"GET", "PUT"},
		},
		"a wrapped fault":  fmt.Errorf("doing: %w", fault.New(fault.Conflict, detail)),
		"too large a body": &http.MaxBytesError{Limit: 5},
		"an unsupported coding": &fault.Fault{
			Kind:   fault.Unsupported,
			Detail: detail,
			Allow:  []string{"identity"},
		},
		"too many":                          fault.Wait(1500*time.Millisecond, detail),
		"an unknown error":                  cause,
		"an internal fault":                 &fault.Fault{Detail: "the cause"},
		"lost bytes":                        &fault.Fault{Kind: fault.Lost, Detail: detail, Cause: cause},
		"a busy table":                      fmt.Errorf("writing: %w", table.ErrBusy),
		"no file descriptor":                &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE},
		"no file descriptor on the machine": syscall.ENFILE,
		"a deadline":                        context.DeadlineExceeded,
		"too many uploads":                  &fault.Fault{Kind: fault.Unavailable, Detail: detail, After: time.Second},
		"a dead table":                      &fault.Fault{Kind: fault.Unavailable, Detail: detail, Cause: cause},
		"a full table":                      table.ErrFull,
		"a full store":                      fmt.Errorf("storing: %w", blob.ErrFull),
	}
	for _, cells := range rowsOf(strings.ReplaceAll(rows, "DETAIL", detail)) {
		status, level := cells[0], cells[1]
		says, what := cells[2], cells[3]
		rec, log := handle(envelope.Outlet{}, func(w http.ResponseWriter, _ *http.Request) error {
			for _, name := range []string{"ETag", "Link", "Content-Disposition", "Cache-Control", "Repr-Digest"} {
				w.Header().Set(name, "of a success")
			}
			return errs[what]
		})
		want := fmt.Sprintf(`{"status":%s,"description":%q,"apiver":"v1 (3.6.0)","time":"`,
			status, http.StatusText(rec.Code))
		if fmt.Sprint(rec.Code) != status || !strings.HasPrefix(rec.Body.String(), want) {
			t.Errorf("%s: status %d, %s", what, rec.Code, rec.Body)
		}
		name, value, _ := strings.Cut(cells[4], ": ")
		if got := rec.Header().Get("Ferry-Error"); got != says || rec.Header().Get(name) != value {
			t.Errorf("%s: Ferry-Error is %q, want %q, and the headers are %v", what, got, says, rec.Header())
		}
		if all := fmt.Sprint(rec.Header()); rec.Header().Get("X-Content-Type-Options") != "nosniff" ||
			strings.Contains(all, "of a success") ||
			strings.Contains(all+rec.Body.String(), "the cause") {
			t.Errorf("%s: the response says too much, or allows sniffing: %s", what, all)
		}
		if !strings.Contains(log, "level="+level) ||
			strings.Contains(log, "secret") ||
			!strings.Contains(log, rec.Header().Get("X-Request-Id")) {
			t.Errorf("%s: the log is %s", what, log)
		}
	}
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	rec, log := handle(envelope.Outlet{}, func(http.ResponseWriter, *http.Request) error { panic("the cause") })
	if rec.Code != 500 ||
		strings.Contains(rec.Body.String(), "cause") ||
		!strings.Contains(log, "the cause") ||
		!strings.Contains(log, "handler_test.go") {
		t.Errorf("status %d, %s, the log is %s", rec.Code, rec.Body, log)
	}
}

// TestAnErrorWhosePageFailsIsTheEnvelope: without an answer of its own it would be an empty success.
func TestAnErrorWhosePageFailsIsTheEnvelope(t *testing.T) {
	t.Parallel()
	for what, write := range map[string]func(http.ResponseWriter, *http.Request, int) error{
		"an error": func(http.ResponseWriter, *http.Request, int) error { return errors.New("the template is wrong") },
		"a panic":  func(http.ResponseWriter, *http.Request, int) error { panic("the template is wrong") },
	} {
		missing := func(http.ResponseWriter, *http.Request) error {
			return fault.New(fault.NotFound, "there is no such page")
		}
		rec, log := handle(envelope.Outlet{WriteError: write}, missing)
		if rec.Code != 404 ||
			!strings.Contains(rec.Body.String(), `"status":404`) ||
			!strings.Contains(log, "no such page") ||
			!strings.Contains(log, "the template is wrong") {
			t.Errorf("%s: status %d, %s; the log: %s", what, rec.Code, rec.Body, log)
		}
	}
}

func TestHTTPSIsDemandedWhereItIsSpoken(t *testing.T) {
	t.Parallel()
	const local = "http://127.0.0.1:8080/v1"
	byTLS := func(r *http.Request) { r.TLS = &tls.ConnectionState{} }
	plain := func(*http.Request) {}
	for what, c := range map[string]struct {
		base string
		over func(*http.Request)
		want string
	}{
		"plain http":                {base: local, over: plain},
		"an unknown address":        {over: plain},
		"TLS of its own":            {base: local, over: byTLS, want: "max-age=31536000"},
		"TLS of a proxy or gateway": {base: "https://files.example.com/v1", over: plain, want: "max-age=31536000"},
	} {
		o := envelope.Outlet{Base: func(context.Context) string { return c.base }}
		rec, _ := handle(o, func(http.ResponseWriter, *http.Request) error { return errors.New("x") }, c.over)
		expect.Equal(t, what, rec.Header().Get("Strict-Transport-Security"), c.want)
	}
}

func TestFailureMidResponseCutsTheConnection(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	server := httptest.NewServer(handler(envelope.Outlet{}, &log, func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
		return errors.New("the disk is gone")
	}))
	resp, err := http.Get(server.URL)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
	}
	server.Close() // waits for the end of the handler
	if err == nil ||
		!strings.Contains(log.String(), "level=ERROR") ||
		!strings.Contains(log.String(), "the disk is gone") {
		t.Errorf("reading ends with %v, and the log is %s", err, log.String())
	}
}

func TestASilentHandlerAnswers200WithTheCallersRequestID(t *testing.T) {
	t.Parallel()
	silent := func(http.ResponseWriter, *http.Request) error { return nil }
	rec, _ := handle(envelope.Outlet{}, silent, func(r *http.Request) {
		*r = *r.WithContext(fault.WithLogID(r.Context(), "from-lambda"))
	})
	if id := rec.Header().Get("X-Request-Id"); rec.Code != 200 || rec.Body.Len() != 0 || id != "from-lambda" {
		t.Errorf("status %d, id %q, %s", rec.Code, id, rec.Body)
	}
}

func TestWrittenErrorIsNotReplaced(t *testing.T) {
	t.Parallel()
	rec, _ := handle(envelope.Outlet{}, func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return errors.New("too late")
	})
	expect.Equal(t, "the status", rec.Code, http.StatusTeapot)
}

func TestTheCallerHasStatusAndBytes(t *testing.T) {
	t.Parallel()
	var before, after [2]int64
	note := func(r *http.Request) [2]int64 {
		c := fault.CallerOf(r.Context())
		return [2]int64{int64(c.Status), c.Sent}
	}
	handle(envelope.Outlet{}, func(w http.ResponseWriter, r *http.Request) error {
		before = note(r)
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, "abc")
		w.(io.ReaderFrom).ReadFrom(strings.NewReader("defg"))
		after = note(r)
		return nil
	})
	if before != [2]int64{0, 0} || after != [2]int64{206, 7} {
		t.Errorf("the caller has %v and then %v", before, after)
	}
}

func TestLinksAreNotEscaped(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	err := envelope.WriteJSON(rec, 201, struct {
		Link string `json:"link"`
	}{"http://h/?a=1&b=<2>"})
	if err != nil || rec.Code != 201 || rec.Body.String() != `{"link":"http://h/?a=1&b=<2>"}`+"\n" {
		t.Errorf("%d %s, %v", rec.Code, rec.Body, err)
	}
	if err := envelope.WriteJSON(httptest.NewRecorder(), 200, make(chan int)); err == nil {
		t.Error("a channel was encoded")
	}
}

// oneConnection is a net.Listener. It is closed after its only connection.
type oneConnection chan net.Conn

func (l oneConnection) Accept() (net.Conn, error) {
	if conn, ok := <-l; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (oneConnection) Close() error   { return nil }
func (oneConnection) Addr() net.Addr { return &net.TCPAddr{} }

// connect starts a server and returns a connection to it, in memory: in a bubble of
// synctest, time passes only while both ends wait.
func connect(t *testing.T, lingering chan struct{}, f envelope.HandlerFunc) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	listener := make(oneConnection, 1)
	listener <- server
	close(listener)
	go http.Serve(listener, handler(envelope.Outlet{Lingering: lingering}, io.Discard, f))
	t.Cleanup(func() { client.Close() })
	return client
}

// TestErrorKeepsTheConnectionOnlyIfTheBodyWasRead checks that the rest of a body is not
// taken for the next request.
func TestErrorKeepsTheConnectionOnlyIfTheBodyWasRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := connect(t, nil, func(_ http.ResponseWriter, r *http.Request) error {
			if r.URL.Path == "/read" {
				io.Copy(io.Discard, r.Body)
			}
			return fault.New(fault.Invalid, "no")
		})
		in := bufio.NewReader(conn)
		const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
		for _, path := range []string{"/read", "/read", "/unread"} {
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s",
				path, len(smuggled), smuggled)
			resp, err := http.ReadResponse(in, nil)
			expect.NoErr(t, err)
			io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != 400 || resp.Close != (path == "/unread") {
				t.Errorf("%s: status %d, closed %v", path, resp.StatusCode, resp.Close)
			}
		}
		if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
			t.Errorf("after that comes %q, %v", rest, err)
		}
	})
}

// TestTheBodyOfARefusedClientIsReadWhileItComes is about clients that read nothing before they have sent
// all, and lose the answer if the connection ends before that.
func TestTheBodyOfARefusedClientIsReadWhileItComes(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		places, taken int
		size          int
		pause         time.Duration
		pieces        int
		arrive        bool
	}{
		"for 29 seconds": {
			places: 2,
			taken:  1,
			size:   1 << 10,
			pause:  time.Second,
			pieces: 29,
			arrive: true,
		},
		"for a minute":              {places: 2, taken: 1, size: 1 << 10, pause: time.Second, pieces: 60},
		"60 MiB":                    {places: 2, size: 6 << 20, pause: time.Second, pieces: 10, arrive: true},
		"80 MiB":                    {places: 2, size: 8 << 20, pause: time.Second, pieces: 10},
		"with a pause of 6 seconds": {places: 2, size: 1 << 10, pause: 6 * time.Second, pieces: 2},
		"for 4 seconds, with no place": {
			places: 1,
			taken:  1,
			size:   1 << 10,
			pause:  time.Second,
			pieces: 4,
			arrive: true,
		},
		"for 9 seconds, with no place": {places: 1, taken: 1, size: 1 << 10, pause: time.Second, pieces: 9},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				places := make(chan struct{}, k.places)
				for range k.taken {
					places <- struct{}{}
				}
				conn := connect(t, places, func(http.ResponseWriter, *http.Request) error {
					return fault.New(fault.Unauthorized, "no")
				})
				got := make(chan string, 1) // a connection in memory has no buffer
				go func() {
					all, _ := io.ReadAll(conn)
					got <- string(all)
				}()
				fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", k.pieces*k.size)
				var err error
				for range k.pieces {
					if err == nil {
						time.Sleep(k.pause)
						_, err = conn.Write(make([]byte, k.size))
					}
				}
				if answer := <-got; (err == nil) != k.arrive || !strings.HasPrefix(answer, "HTTP/1.1 401 ") {
					t.Errorf("sending ends with %v, and the answer is %q", err, answer)
				}
				if len(places) != k.taken {
					t.Errorf("%d places are taken", len(places))
				}
			})
		})
	}
}

// TestAWholeBodyOutlivesItsConnection: one that is cut off does not.
func TestAWholeBodyOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{"hello": "<nil>", "": "<nil>", "hel": "context canceled"} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error)
			conn := connect(t, nil, func(_ http.ResponseWriter, r *http.Request) error {
				io.Copy(io.Discard, r.Body)
				time.Sleep(time.Minute)
				ended <- r.Context().Err()
				return nil
			})
			length := min(len(body), 1) * 5
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", length, body)
			conn.Close()
			if err := <-ended; fmt.Sprint(err) != want {
				t.Errorf("after %q the context has ended with %v, want %s", body, err, want)
			}
		})
	}
}

// readAll reads the body of a request.
func readAll(r *http.Request) error {
	_, err := io.Copy(io.Discard, r.Body)
	return err
}

// send sends the head of a request with a body, then the body in pieces with pauses, and
// returns the status of the answer.
func send(t *testing.T, conn net.Conn, pieces, size int, pause time.Duration) int {
	t.Helper()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", pieces*size)
	go func() {
		for range pieces {
			if _, err := conn.Write(make([]byte, size)); err != nil {
				return
			}
			select {
			case <-time.After(pause):
			case <-t.Context().Done():
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	expect.NoErr(t, err)
	return resp.StatusCode
}

// TestSlowBodyEndsUnlessItIsAFile sends a body a byte at a time, without a pause that is too long.
func TestSlowBodyEndsUnlessItIsAFile(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		handle        func(*http.Request) error
		bytes, status int
	}{
		"a form":                   {handle: readAll, bytes: 1000, status: 400},
		"a form within 28 seconds": {handle: readAll, bytes: 15, status: 200},
		"a body that nobody reads": {handle: func(*http.Request) error { return nil }, bytes: 1000, status: 200},
		"a body that is refused": {
			handle: func(*http.Request) error { return fault.New(fault.NotFound, "no") },
			bytes:  1000,
			status: 404,
		},
		"a file": {
			handle: func(r *http.Request) error { envelope.LongBody(r); return readAll(r) },
			bytes:  20,
			status: 200,
		},
		"a file after its beginning": {
			handle: func(r *http.Request) error {
				r.Body.Read(make([]byte, 1))
				envelope.LongBody(r)
				return readAll(r)
			},
			bytes:  20,
			status: 200,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				conn := connect(t, nil, func(_ http.ResponseWriter, r *http.Request) error { return k.handle(r) })
				status := send(t, conn, k.bytes, 1, 2*time.Second)
				if took := time.Since(begun); status != k.status || took > 40*time.Second {
					t.Errorf("status %d after %v", status, took)
				}
			})
		})
	}
}

// TestFileThatComesTooSlowlyIsEnded sends files in pieces with pauses. The server's patience
// is a minute, in which a file must bring 61,440 bytes: eleven pieces come in the first one.
func TestFileThatComesTooSlowlyIsEnded(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		size   int
		pause  time.Duration
		status int
	}{
		"a little less all the time":  {size: 5585, pause: 6 * time.Second, status: 408},
		"just enough all the time":    {size: 5586, pause: 6 * time.Second, status: 200},
		"nothing after the beginning": {size: 100_000, pause: time.Hour, status: 408},
		"much with pauses":            {size: 100_000, pause: 59 * time.Second, status: 200},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn := connect(t, nil, func(_ http.ResponseWriter, r *http.Request) error {
					envelope.LongBody(r)
					return readAll(r)
				})
				if status := send(t, conn, 20, k.size, k.pause); status != k.status {
					t.Errorf("the status is %d, want %d", status, k.status)
				}
			})
		})
	}
}

func TestOnlyValidRequestIDsAreCarried(t *testing.T) {
	t.Parallel()
	for id, carried := range map[string]bool{
		"JKJaXmPLvHcESHA=": true, "c6af9ac6-7b61-11e6-9a41-93e8deadbeef": true, fault.NewLogID(): true,
		"": false, strings.Repeat("a", 65): false, "a\nb": false, `a"b`: false,
	} {
		if got := fault.LogID(fault.WithLogID(t.Context(), id)); carried && got != id || !carried && got != "" {
			t.Errorf("%q becomes %q", id, got)
		}
	}
}

func TestWaitIsToldInWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Millisecond: "1 second", 119 * time.Second: "119 seconds", 2 * time.Minute: "2 minutes", 34*time.Minute + time.Second: "35 minutes",
		2 * time.Hour: "2 hours", 23*time.Hour + time.Minute: "24 hours",
	} {
		if got := fault.Wait(d, "no").Detail; got != "no; try again in "+want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
