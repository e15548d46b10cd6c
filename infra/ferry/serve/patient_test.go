package serve

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ferry/shared/boot/expect"
)

// narrow has small buffers on the way to its clients.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetWriteBuffer(16 << 10)
	}
	return conn, err
}

// sending starts a server that sends content from a file or from memory, through
// small buffers, and reports how many bytes it sent.
func sending(t *testing.T, content []byte, try time.Duration, tries int) (addr string, sent <-chan int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	expect.NoErr(t, os.WriteFile(path, content, 0o600))
	went := make(chan int64, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		if r.URL.Path == "/memory" {
			n, _ := w.Write(content)
			went <- int64(n)
			return
		}
		f, err := os.Open(path)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		n, _ := io.Copy(w, io.LimitReader(f, int64(len(content)))) // as http.ServeContent does
		went <- n
	}))
	server.Listener = patientListener{narrow{server.Listener}, try, tries}
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), went
}

// ask sends a request, with a small buffer for the answer.
func ask(t *testing.T, addr, path string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	expect.NoErr(t, err)
	t.Cleanup(func() { conn.Close() })
	tcp := conn.(*net.TCPConn)
	expect.NoErr(t, tcp.SetReadBuffer(16<<10))
	fmt.Fprintf(tcp, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
	return tcp
}

func TestConnectionOfAStuckClientIsClosed(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/file", "/memory"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			content := make([]byte, 16<<20)
			addr, sent := sending(t, content, 5*time.Millisecond, 4)
			conn := ask(t, addr, path)
			select {
			case n := <-sent:
				if n == int64(len(content)) {
					t.Error("everything was sent: the test proves nothing")
				}
			case <-time.After(10 * time.Minute):
				t.Fatal("the server is still waiting")
			}
			if n, _ := io.Copy(io.Discard, conn); n >= int64(len(content)) {
				t.Errorf("%d bytes came after the connection ended", n)
			}
		})
	}
}

func TestSlowClientGetsEverything(t *testing.T) {
	t.Parallel()
	content := make([]byte, 4<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	for _, path := range []string{"/file", "/memory"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			addr, _ := sending(t, content, time.Millisecond, 60_000)
			conn := ask(t, addr, path)
			var got bytes.Buffer
			for i := range 1 << 20 { // at first it pauses for longer than a try
				if i < 20 {
					time.Sleep(5 * time.Millisecond)
				}
				if _, err := io.CopyN(&got, conn, 64<<10); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if _, body, _ := bytes.Cut(got.Bytes(), []byte("\r\n\r\n")); !bytes.Equal(body, content) {
				t.Errorf("got %d bytes, want %d, or they differ", len(body), len(content))
			}
		})
	}
}
