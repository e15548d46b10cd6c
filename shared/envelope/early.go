package envelope

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// lingering is how long a client that was refused may go on sending. Many read
// no answer before they are done, and lose it if the connection ends before.
const lingering = 5 * time.Second

// incoming is a request's body.
type incoming struct {
	io.ReadCloser
	begun bool  // something of it was asked for
	err   error // of the last read
}

func (b *incoming) Read(p []byte) (n int, err error) {
	b.begun = true
	n, b.err = b.ReadCloser.Read(p)
	return n, b.err
}

// watch returns the request with a body that is watched, or nil if it has none.
// The request is a copy: a server that finds its own one's body replaced reads
// from it before it answers, also where the client waits for the answer.
func watch(r *http.Request) (*http.Request, *incoming) {
	if r.ContentLength == 0 || r.Body == nil {
		return r, nil
	}
	body := &incoming{ReadCloser: r.Body}
	r = r.WithContext(r.Context())
	r.Body = body
	return r, body
}

// asksFirst reports whether the client waits to be told to send its body.
func asksFirst(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

// early lets an error leave at once, however much of the body is yet to come.
// What then comes must not be taken for a next request.
func (b *incoming) early(w http.ResponseWriter) {
	if b == nil || b.err == io.EOF {
		return
	}
	if http.NewResponseController(w).EnableFullDuplex() == nil { // Lambda has it not, nor needs it
		w.Header().Set("Connection", "close")
	}
}

// hearOut takes in what a refused client still sends.
func (b *incoming) hearOut(w http.ResponseWriter, r *http.Request) {
	if b == nil || b.err == io.EOF {
		return
	}
	c, end := http.NewResponseController(w), time.Now().Add(lingering)
	if c.Flush() != nil || c.SetReadDeadline(end) != nil {
		return
	}
	if !b.begun && asksFirst(r) {
		return // what it was not told to send does not come
	}
	buffer := make([]byte, 32<<10)
	for b.err == nil && time.Now().Before(end) {
		_, _ = b.Read(buffer)
	}
	_ = c.SetReadDeadline(time.Now()) // or the server waits for the rest itself
}
