package upload_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"ferry/shared/boot/apitest"
)

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
	apitest.Must(c.TB, err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/upload?file=x HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n%s\r\n", apitest.Basic(c.Name, apitest.Password), head)
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
		{"a raw body of known length", length, some},
		{"a raw body of known length, before its first byte", length, ""},
		{"a raw body in chunks, between two chunks", chunked, chunk(some)},
		{"a raw body in chunks, within a chunk", chunked, chunk(some) + "100000\r\nabc"},
		{"a raw body in chunks, before the end mark", chunked, chunk(some) + "0\r\n"},
		{"a raw body in malformed chunks", chunked, chunk(some) + "what is this\r\n"},
		{"a raw body in chunks, with one longer than stated", chunked, "3\r\nabcdef\r\n0\r\n\r\n"},
		{"a form within a file", form + length, header + some},
		{"a form within a file's header", form + length, header[:60]},
		{"a form after a whole file", form + length, header + some + "\r\n" + header + "second\r\n--b\r\n"},
		{"a form in its second file", form + length, header + "first\r\n" + header + some},
		{"a form before its end mark", form + length, header + "first\r\n--b"},
		{"a form in chunks", form + chunked, chunk(header + some)},
		{"a form in chunks after a whole file", form + chunked, chunk(header + "first\r\n--b\r\n")},
	} {
		for how, abruptly := range map[string]bool{"properly": false, "abruptly": true} {
			t.Run(k.what+", cut off "+how, func(t *testing.T) {
				t.Parallel()
				c := begin(t)
				c.cutOff(k.head, k.body, abruptly)
				c.waitForLog()
				c.wantNothing(k.what)
				if log := c.Log.String(); strings.Contains(log, "status=5") && !strings.Contains(log, "clientGone=true") {
					t.Errorf("a fault of the client is logged as one of the service:\n%s", log)
				}
			})
		}
	}
}
