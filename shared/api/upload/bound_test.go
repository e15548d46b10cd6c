package upload_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
)

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
	c := begin(t, func(set *api.Settings, _ *local.ServiceOptions) { set.MaxUploads = 2 }) // one for each user
	s, ann, bob, carla := c.Server, c.Caller, c.As("bob"), c.Add("carla")
	put := func(c apitest.Caller, status int, words ...string) {
		t.Helper()
		a := c.Ask("PUT /upload?file=x", "hello").Want(status, words...)
		apitest.Equal(t, "there is a Retry-After", a.Header.Get("Retry-After") != "", status != 200)
	}
	for range 2 { // the places become free again
		whole := hold(t, s, "ann")
		put(ann, 429, "the limit is 1")
		put(bob, 200)
		cut := hold(t, s, "bob")
		put(carla, 503, "too many uploads")
		io.WriteString(whole, "hello")
		whole.wantStatus(t, 200)
		put(ann, 200)
		apitest.Must(t, cut.Conn.(*net.TCPConn).CloseWrite())
		cut.wantStatus(t, 400)
		put(bob, 200)
	}
}

func TestPartsAreBoundedLikeUploads(t *testing.T) {
	t.Parallel()
	c := begin(t, func(set *api.Settings, _ *local.ServiceOptions) { set.MaxUploads = 16 }) // 4 for each user
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
