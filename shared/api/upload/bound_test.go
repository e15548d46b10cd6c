package upload_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/api/apitest"
	"ferry/shared/boot/local"
)

// underWay is an upload whose 5 bytes have not been sent yet.
type underWay struct {
	net.Conn
	in *bufio.Reader
}

func hold(t *testing.T, s *apitest.Server) underWay {
	t.Helper()
	c := send(t, s, "file=x", password, "Content-Length: 5\r\nExpect: 100-continue\r\n")
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
	s := apitest.New(t, func(set *api.Settings, _ *local.ServiceOptions) { set.MaxUploads = 2 })
	s.AddUser("alice", password)
	put := func(status int) *http.Response {
		resp := s.Request("PUT", "/upload?file=x", strings.NewReader("hello"), "Authorization", apitest.Basic("alice", password))
		s.Decode(resp, status)
		return resp
	}
	for range 2 { // the places become free again
		whole, cut := hold(t, s), hold(t, s)
		refused := put(http.StatusServiceUnavailable)
		if refused.Header.Get("Retry-After") == "" || !strings.Contains(refused.Header.Get("Ferry-Error"), "too many uploads") {
			t.Errorf("the headers are %v", refused.Header)
		}
		io.WriteString(whole, "hello")
		whole.wantStatus(t, http.StatusOK)
		put(http.StatusOK)
		if err := cut.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		cut.wantStatus(t, http.StatusBadRequest)
	}
}
