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
	return holdTo(t, s, "POST /v1/upload?file=x", "Authorization: "+apitest.Basic(user, password)+"\r\n")
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
	s := apitest.New(t, func(set *api.Settings, _ *local.ServiceOptions) { set.MaxUploads = 2 }) // one for each user
	for _, user := range []string{"alice", "bob", "carla"} {
		s.AddUser(user, password)
	}
	put := func(user string, status int, words string) {
		t.Helper()
		resp := s.Request("PUT", "/upload?file=x", strings.NewReader("hello"), "Authorization", apitest.Basic(user, password))
		s.Decode(resp, status)
		if refused := status != 200; refused != (resp.Header.Get("Retry-After") != "") || !strings.Contains(resp.Header.Get("Ferry-Error"), words) {
			t.Errorf("the headers are %v", resp.Header)
		}
	}
	for range 2 { // the places become free again
		whole := hold(t, s, "alice")
		put("alice", http.StatusTooManyRequests, "the limit is 1")
		put("bob", http.StatusOK, "")
		cut := hold(t, s, "bob")
		put("carla", http.StatusServiceUnavailable, "too many uploads")
		io.WriteString(whole, "hello")
		whole.wantStatus(t, http.StatusOK)
		put("alice", http.StatusOK, "")
		must(t, cut.Conn.(*net.TCPConn).CloseWrite())
		cut.wantStatus(t, http.StatusBadRequest)
		put("bob", http.StatusOK, "")
	}
}

func TestPartsAreBoundedLikeUploads(t *testing.T) {
	t.Parallel()
	c := begin(t, func(set *api.Settings, _ *local.ServiceOptions) { set.MaxUploads = 16 }) // 4 for each user
	c.InProcess("parts go to the store")
	holdPart := func(p part) underWay {
		return holdTo(t, c.Server, "PUT "+strings.TrimPrefix(p.URL, c.Root), "")
	}
	one, other := c.sign(c.plan("", 5).ID, `{"numbers":[1]}`)[0], c.sign(c.plan("", 5).ID, `{"numbers":[1]}`)[0]
	want := func(p part, status int, words string) {
		t.Helper()
		resp := c.put(p, []byte("hello"))
		if resp.StatusCode != status || !strings.Contains(resp.Header.Get("Ferry-Error"), words) {
			t.Errorf("status %d (%s), want %d", resp.StatusCode, resp.Header.Get("Ferry-Error"), status)
		}
	}
	holdPart(one)
	second := holdPart(one)
	want(one, http.StatusConflict, "sent twice")
	want(other, http.StatusOK, "")
	third, fourth := holdPart(other), hold(t, c.Server, "ann")
	want(other, http.StatusTooManyRequests, "the limit is 4")
	for _, u := range []underWay{second, third, fourth} {
		io.WriteString(u, "hello")
		u.wantStatus(t, http.StatusOK)
	}
	want(one, http.StatusOK, "")
}
