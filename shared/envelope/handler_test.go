package envelope_test

import (
	"bufio"
	"bytes"
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
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// handle lets f answer a request, and returns the response and the log.
func handle(t *testing.T, o envelope.Outlet, f envelope.HandlerFunc, method string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var log bytes.Buffer
	o.Now, o.Log = time.Now, slog.New(slog.NewTextHandler(&log, nil))
	rec := httptest.NewRecorder()
	o.Handler(f).ServeHTTP(rec, httptest.NewRequest(method, "/v1/path?query=secret", nil))
	return rec, log.String()
}

func TestEachKindOfErrorHasItsResponse(t *testing.T) {
	t.Parallel()
	const detail = "a sentence on what is wrong"
	for _, c := range []struct {
		what    string
		err     error
		status  int
		says    string
		headers map[string]string
		level   string
	}{
		{"bad parameters", fault.New(fault.Invalid, detail), 400, detail, nil, "INFO"},
		{"a bad parameter", fault.Parameter("c", detail), 400, detail, map[string]string{"Ferry-Parameter": "c"}, "INFO"},
		{"no credential", fault.New(fault.Unauthorized, detail), 401, detail, map[string]string{"WWW-Authenticate": `Basic realm="ferry", charset="UTF-8"`}, "INFO"},
		{"not allowed", fault.New(fault.Forbidden, detail), 403, detail, nil, "INFO"},
		{"not found", fault.New(fault.NotFound, detail), 404, detail, nil, "INFO"},
		{"a wrong method", &fault.Fault{Kind: fault.MethodNotAllowed, Detail: detail, Allow: []string{"GET", "PUT"}}, 405, detail, map[string]string{"Allow": "GET, PUT"}, "INFO"},
		{"a conflict", fault.New(fault.Conflict, detail), 409, detail, nil, "INFO"},
		{"a failed precondition", fault.New(fault.Precondition, detail), 412, detail, nil, "INFO"},
		{"too large", fault.New(fault.TooLarge, detail), 413, detail, nil, "INFO"},
		{"too large a body", &http.MaxBytesError{Limit: 5}, 413, "the body is larger than 5 bytes", nil, "INFO"},
		{"an unsupported type", fault.New(fault.Unsupported, detail), 415, detail, nil, "INFO"},
		{"a range", fault.New(fault.Unsatisfiable, detail), 416, detail, nil, "INFO"},
		{"too many", fault.Wait(1500*time.Millisecond, detail), 429, detail + "; try again in 2 seconds", map[string]string{"Retry-After": "2"}, "INFO"},
		{"a wrapped fault", fmt.Errorf("doing: %w", fault.New(fault.Conflict, detail)), 409, detail, nil, "INFO"},
		{"a fault with a cause", &fault.Fault{Kind: fault.Invalid, Detail: detail, Cause: errors.New("the cause")}, 400, detail, nil, "INFO"},
		{"characters that a header must not have", fault.New(fault.Invalid, "a\r\nb: é"), 400, "a??b: ?", nil, "INFO"},
		{"a busy table", fmt.Errorf("writing: %w", table.ErrBusy), 503, "the service is busy; try again", map[string]string{"Retry-After": "1"}, "WARN"},
		{"no file descriptor", fmt.Errorf("opening: %w", &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}), 503, "the service is busy; try again", map[string]string{"Retry-After": "1"}, "WARN"},
		{"no file descriptor on the machine", syscall.ENFILE, 503, "the service is busy; try again", map[string]string{"Retry-After": "1"}, "WARN"},
		{"a deadline", context.DeadlineExceeded, 503, "the request took too long; try again", map[string]string{"Retry-After": "1"}, "ERROR"},
		{"a full table", table.ErrFull, 507, "the service has no room left for this; nothing was stored", nil, "WARN"},
		{"a full store", fmt.Errorf("storing: %w", blob.ErrFull), 507, "the service has no room left for this; nothing was stored", nil, "WARN"},
		{"too many uploads", &fault.Fault{Kind: fault.Unavailable, Detail: detail, After: time.Second}, 503, detail, map[string]string{"Retry-After": "1"}, "WARN"},
		{"a dead table", &fault.Fault{Kind: fault.Unavailable, Detail: detail, Cause: errors.New("the cause")}, 503, detail, nil, "ERROR"},
		{"an unknown error", errors.New("the cause"), 500, "", nil, "ERROR"},
		{"lost bytes", &fault.Fault{Kind: fault.Lost, Detail: detail, Cause: errors.New("the cause")}, 500, detail, nil, "ERROR"},
		{"an internal fault", &fault.Fault{Detail: "the cause"}, 500, "", nil, "ERROR"},
	} {
		rec, log := handle(t, envelope.Outlet{}, func(w http.ResponseWriter, _ *http.Request) error {
			for _, name := range []string{"ETag", "Link", "Content-Disposition", "Cache-Control", "Repr-Digest"} {
				w.Header().Set(name, "of a success")
			}
			return c.err
		}, "GET")
		want := fmt.Sprintf(`{"status":%d,"description":%q,"apiver":"v1 (3.6.0)","time":"`, c.status, http.StatusText(c.status))
		if rec.Code != c.status || !strings.HasPrefix(rec.Body.String(), want) {
			t.Errorf("%s: status %d, %s", c.what, rec.Code, rec.Body)
		}
		if got := rec.Header().Get("Ferry-Error"); got != c.says {
			t.Errorf("%s: Ferry-Error is %q, want %q", c.what, got, c.says)
		}
		for name, value := range c.headers {
			if got := rec.Header().Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", c.what, name, got, value)
			}
		}
		if all := fmt.Sprint(rec.Header()); rec.Header().Get("X-Content-Type-Options") != "nosniff" || strings.Contains(all, "of a success") || strings.Contains(all+rec.Body.String(), "the cause") {
			t.Errorf("%s: the response says too much, or allows sniffing: %s", c.what, all)
		}
		if !strings.Contains(log, "level="+c.level) || strings.Contains(log, "secret") || !strings.Contains(log, rec.Header().Get("X-Request-Id")) {
			t.Errorf("%s: the log is %s", c.what, log)
		}
	}
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	rec, log := handle(t, envelope.Outlet{}, func(http.ResponseWriter, *http.Request) error { panic("the cause") }, "GET")
	if rec.Code != 500 || strings.Contains(rec.Body.String(), "cause") || !strings.Contains(log, "the cause") || !strings.Contains(log, "handler_test.go") {
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
		rec, log := handle(t, envelope.Outlet{WriteError: write}, missing, "GET")
		if rec.Code != 404 || !strings.Contains(rec.Body.String(), `"status":404`) || !strings.Contains(log, "no such page") || !strings.Contains(log, "the template is wrong") {
			t.Errorf("%s: status %d, %s; the log: %s", what, rec.Code, rec.Body, log)
		}
	}
}

func TestHTTPSIsDemandedWhereItIsSpoken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, base string
		tls        bool
		want       string
	}{
		{"plain http", "http://127.0.0.1:8080/v1", false, ""},
		{"an unknown address", "", false, ""},
		{"TLS of its own", "http://127.0.0.1:8080/v1", true, "max-age=31536000"},
		{"TLS of a proxy or gateway", "https://files.example.com/v1", false, "max-age=31536000"},
	} {
		o := envelope.Outlet{Now: time.Now, Log: slog.New(slog.DiscardHandler), Base: func(context.Context) string { return c.base }}
		r := httptest.NewRequest("GET", "/v1/x", nil)
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		w := httptest.NewRecorder()
		o.Handler(func(http.ResponseWriter, *http.Request) error { return errors.New("x") }).ServeHTTP(w, r)
		if got := w.Header().Get("Strict-Transport-Security"); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestSilentHandlerAnswers200(t *testing.T) {
	t.Parallel()
	if rec, _ := handle(t, envelope.Outlet{}, func(http.ResponseWriter, *http.Request) error { return nil }, "GET"); rec.Code != 200 || rec.Body.Len() != 0 {
		t.Errorf("status %d, %s", rec.Code, rec.Body)
	}
}

func TestFailureMidResponseCutsTheConnection(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := envelope.Outlet{Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))}
	ended := make(chan struct{})
	handler := o.Handler(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
		return errors.New("the disk is gone")
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err == nil {
		defer resp.Body.Close()
		var text []byte
		if text, err = io.ReadAll(resp.Body); err == nil {
			t.Errorf("the response looks whole: %q", text)
		}
	}
	<-ended
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "the disk is gone") {
		t.Errorf("the log is %s", log.String())
	}
}

func TestWrittenErrorIsNotReplaced(t *testing.T) {
	t.Parallel()
	rec, _ := handle(t, envelope.Outlet{}, func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return errors.New("too late")
	}, "GET")
	if rec.Code != http.StatusTeapot {
		t.Errorf("status %d", rec.Code)
	}
}

func TestRequestIDOfTheCallerIsKept(t *testing.T) {
	t.Parallel()
	o := envelope.Outlet{Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	h := o.Handler(func(http.ResponseWriter, *http.Request) error { return nil })
	rec := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	h.ServeHTTP(rec, r.WithContext(fault.WithLogID(r.Context(), "from-lambda")))
	if got := rec.Header().Get("X-Request-Id"); got != "from-lambda" {
		t.Errorf("the id is %q", got)
	}
}

func TestTheCallerHasStatusAndBytes(t *testing.T) {
	t.Parallel()
	var before, after [2]int64
	note := func(r *http.Request) [2]int64 {
		c := fault.CallerOf(r.Context())
		return [2]int64{int64(c.Status), c.Sent}
	}
	handle(t, envelope.Outlet{}, func(w http.ResponseWriter, r *http.Request) error {
		before = note(r)
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, "abc")
		w.(io.ReaderFrom).ReadFrom(strings.NewReader("defg"))
		after = note(r)
		return nil
	}, "GET")
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
func connect(t *testing.T, f envelope.HandlerFunc) net.Conn { return connectTo(t, nil, f) }

func connectTo(t *testing.T, lingering chan struct{}, f envelope.HandlerFunc) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	listener := make(oneConnection, 1)
	listener <- server
	close(listener)
	o := envelope.Outlet{Now: time.Now, Log: slog.New(slog.DiscardHandler), Lingering: lingering}
	go http.Serve(listener, o.Handler(f))
	t.Cleanup(func() { client.Close() })
	return client
}

// TestErrorKeepsTheConnectionOnlyIfTheBodyWasRead checks that the rest of a body is not
// taken for the next request.
func TestErrorKeepsTheConnectionOnlyIfTheBodyWasRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := connect(t, func(_ http.ResponseWriter, r *http.Request) error {
			if r.URL.Path == "/read" {
				io.Copy(io.Discard, r.Body)
			}
			return fault.New(fault.Invalid, "no")
		})
		in := bufio.NewReader(conn)
		const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
		for _, path := range []string{"/read", "/read", "/unread"} {
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(smuggled), smuggled)
			resp, err := http.ReadResponse(in, nil)
			must(t, err)
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

// TestStalledConnectionIsClosed sends half of a body. Without a deadline the server would
// wait for ever for the rest.
func TestStalledConnectionIsClosed(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		read  bool
		after time.Duration
	}{"while the body is read": {true, 30 * time.Second}, "after a refusal": {false, 5 * time.Second}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				conn := connect(t, func(_ http.ResponseWriter, r *http.Request) (err error) {
					if k.read {
						_, err = io.Copy(io.Discard, r.Body)
					}
					return &fault.Fault{Kind: fault.Invalid, Detail: "it stalled", Cause: err}
				})
				io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhello")
				all, err := io.ReadAll(conn)
				if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 400 ") {
					t.Errorf("the connection ends with %v after %q", err, all)
				}
				if took := time.Since(begun); took < k.after || took > k.after+2*time.Second {
					t.Errorf("it is closed after %v", took)
				}
			})
		})
	}
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
		"for 29 seconds":               {2, 1, 1 << 10, time.Second, 29, true},
		"for a minute":                 {2, 1, 1 << 10, time.Second, 60, false},
		"60 MiB":                       {2, 0, 6 << 20, time.Second, 10, true},
		"80 MiB":                       {2, 0, 8 << 20, time.Second, 10, false},
		"with a pause of 6 seconds":    {2, 0, 1 << 10, 6 * time.Second, 2, false},
		"for 4 seconds, with no place": {1, 1, 1 << 10, time.Second, 4, true},
		"for 9 seconds, with no place": {1, 1, 1 << 10, time.Second, 9, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				places := make(chan struct{}, k.places)
				for range k.taken {
					places <- struct{}{}
				}
				conn := connectTo(t, places, func(http.ResponseWriter, *http.Request) error {
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
			conn := connect(t, func(_ http.ResponseWriter, r *http.Request) error {
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
	must(t, err)
	return resp.StatusCode
}

// TestSlowBodyEndsUnlessItIsAFile sends a body a byte at a time, without a pause that is too long.
func TestSlowBodyEndsUnlessItIsAFile(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		handle        func(*http.Request) error
		bytes, status int
	}{
		"a form":                     {readAll, 1000, 400},
		"a body that nobody reads":   {func(*http.Request) error { return nil }, 1000, 200},
		"a body that is refused":     {func(*http.Request) error { return fault.New(fault.NotFound, "no") }, 1000, 404},
		"a file":                     {func(r *http.Request) error { envelope.LongBody(r); return readAll(r) }, 20, 200},
		"a file after its beginning": {func(r *http.Request) error { r.Body.Read(make([]byte, 1)); envelope.LongBody(r); return readAll(r) }, 20, 200},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				conn := connect(t, func(_ http.ResponseWriter, r *http.Request) error { return k.handle(r) })
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
		"a little less all the time":  {5585, 6 * time.Second, 408},
		"just enough all the time":    {5586, 6 * time.Second, 200},
		"nothing after the beginning": {100_000, time.Hour, 408},
		"much with pauses":            {100_000, 59 * time.Second, 200},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn := connect(t, func(_ http.ResponseWriter, r *http.Request) error {
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

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
