package upload_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/service"
)

// patience ends a test whose server never answers.
const patience = 10 * time.Minute

// refused are uploads that must be refused because of their headers.
var refused = []struct {
	what, query, password string
	length                int64
	status                int
}{
	{what: "a wrong password", query: "file=x", password: "another password", length: 1 << 20, status: 401},
	{
		what:     "a body with a stated length that is too large",
		query:    "file=x",
		password: apitest.Password,
		length:   3 << 20,
		status:   413,
	},
	{what: "no name for the file", password: apitest.Password, length: 1 << 20, status: 400},
	{
		what:     "an unknown destination",
		query:    "file=x&d=nobody",
		password: apitest.Password,
		length:   1 << 20,
		status:   400,
	},
	{what: "a malformed number", query: "file=x&c=123", password: apitest.Password, length: 1 << 20, status: 400},
	{what: "a malformed query", query: "file=%zz", password: apitest.Password, length: 1 << 20, status: 400},
	{what: "a body over the quota", query: "file=x", password: apitest.Password, length: 2<<20 - 1, status: 413},
}

func startRefusing(t *testing.T) *apitest.Server {
	s := apitest.New(t, func(set *service.Settings, _ *local.ServiceOptions) { set.MaxBody = 2 << 20 })
	s.AddUser("alice", apitest.Password, apitest.Quota(3<<19))
	return s
}

// send sends the headers of an upload and returns the connection.
func send(t *testing.T, s *apitest.Server, query, password, headers string) net.Conn {
	t.Helper()
	return sendTo(t, s, "POST /v1/upload?"+query, "Authorization: "+apitest.Basic("alice", password)+"\r\n"+headers)
}

// sendTo sends the head of a request.
func sendTo(t *testing.T, s *apitest.Server, what, headers string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.HTTP.Listener.Addr().String())
	expect.NoErr(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\n%s\r\n", what, headers)
	return c
}

// answer reads a response, and reports whether 100 (Continue) came before it.
func answer(t *testing.T, c net.Conn) (status int, continued bool) {
	t.Helper()
	in := bufio.NewReader(c)
	for {
		resp, err := http.ReadResponse(in, nil)
		expect.NoErr(t, err)
		if resp.StatusCode == http.StatusContinue {
			continued = true
			continue
		}
		_, err = io.Copy(io.Discard, resp.Body)
		expect.NoErr(t, err)
		return resp.StatusCode, continued
	}
}

func TestUploadIsRefusedBeforeItsBodyIsSent(t *testing.T) {
	t.Parallel()
	s := startRefusing(t)
	for _, k := range refused {
		for what, headers := range map[string]string{
			"a client that asks first":  fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n", k.length),
			"a client that waits":       fmt.Sprintf("Content-Length: %d\r\n", k.length),
			"a client with few bytes":   "Content-Length: 10\r\n",
			"a client without a length": "Transfer-Encoding: chunked\r\n",
		} {
			if k.status == 413 && !strings.Contains(headers, fmt.Sprint(k.length)) {
				continue
			}
			t.Run(k.what+" from "+what, func(t *testing.T) {
				t.Parallel()
				status, continued := answer(t, send(t, s, k.query, k.password, headers))
				if status != k.status || continued {
					t.Errorf("status %d, want %d; told to continue: %v", status, k.status, continued)
				}
			})
		}
	}
}

// TestClientThatSendsItsWholeBodyFirstGetsTheAnswer is about the many clients that read nothing
// before they have sent all of their body. envelope's tests have the bounds.
func TestClientThatSendsItsWholeBodyFirstGetsTheAnswer(t *testing.T) {
	t.Parallel()
	s := startRefusing(t)
	block := strings.Repeat("x", 1<<20)
	for password, want := range map[string]int{"wrong password": 401, apitest.Password: 413} {
		c := send(t, s, "file=x", password, "Transfer-Encoding: chunked\r\n")
		for range 48 {
			_, err := fmt.Fprintf(c, "%x\r\n%s\r\n", len(block), block)
			expect.NoErr(t, err)
		}
		status, _ := answer(t, c)
		expect.Equal(t, "the status", status, want)
	}
	expect.Equal(t, "files of refused uploads", len(s.Files()), 0)
}

// underWay is an upload whose 5 bytes have not been sent yet.
type underWay struct {
	net.Conn
	in *bufio.Reader
}

func hold(t *testing.T, s *apitest.Server, user string) underWay {
	t.Helper()
	return holdTo(t, s, "POST /v1/upload?file=x", "Authorization: "+apitest.Basic(user, apitest.Password)+"\r\n")
}

func holdTo(t *testing.T, s *apitest.Server, what, headers string) underWay {
	t.Helper()
	c := sendTo(t, s, what, headers+"Content-Length: 5\r\nExpect: 100-continue\r\n")
	u := underWay{c, bufio.NewReader(c)}
	if line, err := u.in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("the first line is %q, %v", line, err)
	}
	u.in.ReadString('\n')
	return u
}

func (u underWay) wantStatus(t *testing.T, status int) {
	t.Helper()
	if resp, err := http.ReadResponse(u.in, nil); err != nil || resp.StatusCode != status {
		t.Fatalf("the answer is %+v, %v, want %d", resp, err, status)
	}
}

func TestConcurrentUploadsAreBounded(t *testing.T) {
	t.Parallel()
	c := begin(t, func(set *service.Settings, _ *local.ServiceOptions) { set.MaxUploads = 2 }) // one for each user
	s, ann, bob, carla := c.Server, c.Caller, c.As("bob"), c.Add("carla")
	put := func(c apitest.Caller, status int, words ...string) {
		t.Helper()
		a := c.Ask("PUT /upload?file=x", "hello").Want(status, words...)
		expect.Equal(t, "there is a Retry-After", a.Header.Get("Retry-After") != "", status != 200)
	}
	c.form("bundle=a.zip", someFiles("a")).Want(200) // where there are few places it takes all
	for range 2 {                                    // the places become free again
		whole := hold(t, s, "ann")
		put(ann, 429, "the limit is 1")
		put(bob, 200)
		cut := hold(t, s, "bob")
		put(carla, 503, "too many uploads")
		io.WriteString(whole, "hello")
		whole.wantStatus(t, 200)
		put(ann, 200)
		expect.NoErr(t, cut.Conn.(*net.TCPConn).CloseWrite())
		cut.wantStatus(t, 400)
		put(bob, 200)
	}
}

func TestAFormThatBecomesABundleTakesTwelvePlaces(t *testing.T) {
	t.Parallel()
	c := begin(t, func(set *service.Settings, _ *local.ServiceOptions) { set.MaxUploads = 4 * 25 }) // 25 for each user
	holdForm := func() underWay {
		return holdTo(t, c.Server, "POST /v1/upload?bundle=a.zip", "Authorization: "+apitest.Basic(
			"ann",
			apitest.Password,
		)+"\r\n"+
			"Content-Type: multipart/form-data; boundary=b\r\n")
	}
	first, _ := holdForm(), holdForm()
	c.form("bundle=b.zip", someFiles("a")).Want(429, "the limit is 25")
	hold(t, c.Server, "ann")
	c.post("file=x", "hello").Want(429)
	expect.NoErr(t, first.Conn.(*net.TCPConn).CloseWrite())
	first.wantStatus(t, 400)
	c.post("file=x", "hello").Want(200)
}

func TestPartsAreBoundedLikeUploads(t *testing.T) {
	t.Parallel()
	c := begin(t, func(set *service.Settings, _ *local.ServiceOptions) { set.MaxUploads = 16 }) // 4 for each user
	c.InProcess("parts go to the store")
	holdPart := func(p part) underWay {
		return holdTo(t, c.Server, "PUT "+strings.TrimPrefix(p.URL, c.Root), "")
	}
	one, other := c.sign(c.plan("", 5), 1), c.sign(c.plan("", 5), 1)
	holdPart(one)
	second := holdPart(one)
	c.put(one, "hello").Want(409, "sent twice")
	c.put(other, "hello").Want(200)
	third, fourth := holdPart(other), hold(t, c.Server, "ann")
	c.put(other, "hello").Want(429, "the limit is 4")
	for _, u := range []underWay{second, third, fourth} {
		io.WriteString(u, "hello")
		u.wantStatus(t, 200)
	}
	c.put(one, "hello").Want(200)
}

// TestAWholeFormOfAHalfClosedConnectionIsStored: its client has no more to say, but listens. A form
// has an end of its own, so nothing reads on to the end of the body.
func TestAWholeFormOfAHalfClosedConnectionIsStored(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("a gateway reads a body whole before a function is called")
	kind, form := encode(someFiles("a")...)
	headers := "Authorization: " + apitest.Basic("ann", apitest.Password) + "\r\nContent-Type: " + kind + "\r\n"
	for framing, body := range map[string]string{
		fmt.Sprintf("Content-Length: %d\r\n", len(form)): form,
		"Transfer-Encoding: chunked\r\n":                 fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(form), form),
	} {
		conn := sendTo(t, c.Server, "POST /v1/upload", headers+framing)
		io.WriteString(conn, body)
		expect.NoErr(t, conn.(*net.TCPConn).CloseWrite())
		status, _ := answer(t, conn)
		expect.Equal(t, framing, status, 200)
	}
	expect.Equal(t, "stored", len(c.names()), 2)
}

// cutOff sends the beginning of an upload and, once that is under way, closes the
// connection, either properly or like a killed process.
func (c caller) cutOff(head, body string, abruptly bool) {
	c.Helper()
	begun := make(chan struct{})
	signal := sync.OnceFunc(func() { close(begun) })
	c.Calls.Before("table.Update", func() error { // it takes the file's id
		signal()
		return nil
	})
	conn, err := net.Dial("tcp", c.HTTP.Listener.Addr().String())
	expect.NoErr(c.TB, err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/upload?file=x HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n%s\r\n",
		apitest.Basic(c.Name, apitest.Password), head)
	io.WriteString(conn, body)
	<-begun
	if abruptly {
		conn.(*net.TCPConn).SetLinger(0)
	}
}

func TestInterruptedUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	const (
		length  = "Content-Length: 3000000\r\n"
		chunked = "Transfer-Encoding: chunked\r\n"
		form    = "Content-Type: multipart/form-data; boundary=b\r\n"
		header  = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
	)
	some := strings.Repeat("x", 1<<20)
	chunk := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }
	for _, k := range []struct{ what, head, body string }{
		{what: "a raw body of known length", head: length, body: some},
		{what: "a raw body of known length, before its first byte", head: length},
		{what: "a raw body in chunks, between two chunks", head: chunked, body: chunk(some)},
		{what: "a raw body in chunks, within a chunk", head: chunked, body: chunk(some) + "100000\r\nabc"},
		{what: "a raw body in chunks, before the end mark", head: chunked, body: chunk(some) + "0\r\n"},
		{what: "a raw body in malformed chunks", head: chunked, body: chunk(some) + "what is this\r\n"},
		{what: "a raw body in chunks, with one longer than stated", head: chunked, body: "3\r\nabcdef\r\n0\r\n\r\n"},
		{what: "a form within a file", head: form + length, body: header + some},
		{what: "a form within a file's header", head: form + length, body: header[:60]},
		{
			what: "a form after a whole file",
			head: form + length,
			body: header + some + "\r\n" + header + "second\r\n--b\r\n",
		},
		{what: "a form in its second file", head: form + length, body: header + "first\r\n" + header + some},
		{what: "a form before its end mark", head: form + length, body: header + "first\r\n--b"},
		{what: "a form in chunks", head: form + chunked, body: chunk(header + some)},
		{what: "a form in chunks after a whole file", head: form + chunked, body: chunk(header + "first\r\n--b\r\n")},
	} {
		for how, abruptly := range map[string]bool{"properly": false, "abruptly": true} {
			t.Run(k.what+", cut off "+how, func(t *testing.T) {
				t.Parallel()
				c := begin(t)
				c.cutOff(k.head, k.body, abruptly)
				c.waitForLog()
				c.wantNothing(k.what)
				if log := c.Log.String(); strings.Contains(log, "status=5") &&
					!strings.Contains(log, "clientGone=true") {
					t.Errorf("a fault of the client is logged as one of the service:\n%s", log)
				}
			})
		}
	}
}
