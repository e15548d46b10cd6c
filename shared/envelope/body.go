package envelope

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"ferry/shared/fault"
)

// drainTime is how long a refused client may continue to send. Many clients read the
// answer only when they are done, and lose it if the connection ends before that.
const drainTime = 5 * time.Second

// shortTime is how long a body may take unless it is a file.
const shortTime = 30 * time.Second

// patience is how long a client may pause within a file.
const patience = time.Minute

// leastRate is how many bytes a second of a file must arrive on average while the server waits
// for it, in each period as long as patience. The server's own work does not count.
const leastRate = 1 << 10

// requestBody is the only reader between a server's connection and the code that reads
// a request. It ends a body that is too slow or too large. Its errors are faults
// of the client, so they cannot be confused with errors of the store that the body is
// copied to. Only the server closes it. It is for one goroutine.
type requestBody struct {
	io.ReadCloser
	*fault.Caller // Received is how many bytes were read
	control       *http.ResponseController
	long          bool          // it is a file
	moved         time.Time     // when the deadline of a file was last moved
	err           error         // of the last read
	limit         int64         // bytes; 0 is no limit
	waited        time.Duration // for the client, in this period
	before        int64         // bytes read before this period
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (n int, err error) {
	now := time.Now()
	if b.long && now.Sub(b.moved) > patience/10 {
		b.moved = now
		_ = b.control.SetReadDeadline(now.Add(patience)) // Lambda has none
	}
	n, b.err = b.ReadCloser.Read(p)
	b.Received += int64(n)
	b.waited += time.Since(now)
	slow := b.long && errors.Is(b.err, os.ErrDeadlineExceeded)
	if b.waited >= patience {
		slow = slow || float64(b.Received-b.before) < leastRate*b.waited.Seconds()
		b.waited, b.before = 0, b.Received
	}
	switch {
	case b.limit > 0 && b.Received > b.limit:
		return max(n-int(b.Received-b.limit), 0), &http.MaxBytesError{Limit: b.limit}
	case b.err == io.EOF:
		_ = b.control.SetReadDeadline(time.Time{})
	case slow:
		return n, &fault.Fault{Kind: fault.TooSlow, Detail: "the body arrives too slowly; send it again", Cause: b.err}
	case b.err != nil:
		return n, BrokenBody(b.err)
	}
	return n, b.err
}

// BrokenBody returns the fault for a body that is cut off, too slow, or not what its
// headers say.
func BrokenBody(cause error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](cause); tooLarge || fault.Of(cause) != nil {
		return cause
	}
	return &fault.Fault{Kind: fault.Invalid, Detail: "the body is cut off or malformed", Cause: cause}
}

// LimitBody limits the body of a request that came through Outlet.Handler; 0 is no
// limit. A body whose stated length is larger is refused at once.
func LimitBody(r *http.Request, limit int64) error {
	if limit > 0 && r.ContentLength > limit {
		return &http.MaxBytesError{Limit: limit}
	}
	if b, ok := r.Body.(*requestBody); ok {
		b.limit = limit
	}
	return nil
}

// LongBody lets the body of a request that came through Outlet.Handler take as long as
// it needs, as long as it keeps coming: for files, once the caller may send one.
func LongBody(r *http.Request) {
	if b, ok := r.Body.(*requestBody); ok {
		b.long = true
	}
}

// wrapBody returns the request with a requestBody, which has ended if there is no body.
// The request is a copy: if the body of the server's own request were replaced, the server
// would read it before it answers, even if the client waits for the answer.
func wrapBody(w http.ResponseWriter, r *http.Request, c *fault.Caller) (*http.Request, *requestBody) {
	if r.ContentLength == 0 || r.Body == nil {
		return r, &requestBody{err: io.EOF}
	}
	b := &requestBody{ReadCloser: r.Body, Caller: c, control: http.NewResponseController(w)}
	_ = b.control.SetReadDeadline(time.Now().Add(shortTime)) // for the server too: it reads what a handler leaves
	r = r.WithContext(r.Context())
	r.Body = b
	return r, b
}

// answerEarly lets the server send an error at once, even if much of the body is still to
// come. The rest of the body must not be taken for the next request.
func (b *requestBody) answerEarly(w http.ResponseWriter) {
	if b.err != io.EOF && b.control.EnableFullDuplex() == nil { // Lambda neither has nor needs it
		w.Header().Set("Connection", "close")
	}
}

// drain reads what a refused client still sends. Some clients ask whether to send and do
// not wait for the answer.
func (b *requestBody) drain() {
	end := time.Now().Add(drainTime)
	if b.err == io.EOF || b.control.Flush() != nil || b.control.SetReadDeadline(end) != nil {
		return
	}
	b.long = false // so that Read does not move the deadline
	buffer := make([]byte, 32<<10)
	for b.err == nil && time.Now().Before(end) {
		_, _ = b.Read(buffer)
	}
	_ = b.control.SetReadDeadline(time.Now()) // otherwise the server would wait for the rest
}
