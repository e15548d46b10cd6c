package envelope

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ferry/shared/fault"
)

// A refused client may continue to send for some time: many clients read the answer only when they
// are done, and lose it if the connection ends before that. At most MaxLingering clients of a
// process get longDrain, and may pause for drainTime; the others get drainTime in all.
const (
	drainTime    = 5 * time.Second
	longDrain    = 30 * time.Second
	maxDrained   = 64 << 20 // bytes
	MaxLingering = 100
)

// shortTime is how long a body may take unless it is a file.
const shortTime = 30 * time.Second

// patience is how long a client may pause within a file.
const patience = time.Minute

// leastRate is how many bytes per second of a file must arrive on average while the server waits
// for them, in each period as long as patience. The server's own work does not count.
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
	reading       sync.Mutex    // guards err while it is set
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (n int, err error) {
	now := time.Now()
	if b.long && now.Sub(b.moved) > patience/10 {
		b.moved = now
		_ = b.control.SetReadDeadline(now.Add(patience)) // Lambda has none
	}
	b.reading.Lock()
	n, b.err = b.ReadCloser.Read(p)
	b.reading.Unlock()
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
		return n, &fault.Fault{
			Kind:   fault.TooSlow,
			Detail: "the body arrives too slowly; send it again",
			Cause:  b.err,
		}
	case b.err != nil:
		return n, BrokenBody(b.err)
	}
	return n, b.err
}

// BrokenBody returns the fault for a body that is cut off, too slow, or not what its
// headers say.
func BrokenBody(cause error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](cause); tooLarge ||
		fault.Of(cause) != nil {
		return cause
	}
	return &fault.Fault{
		Kind:   fault.Invalid,
		Detail: "the body is cut off or malformed",
		Cause:  cause,
	}
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

// CheckContent refuses a body, or a part of a form, whose headers say that it is not a file as
// such, but a piece of one (RFC 9110, section 14.5) or an encoded one (section 15.5.16). length is
// the length of the body in bytes, or -1 if it is not known or the body has more than the file.
func CheckContent(h http.Header, length int64) error {
	if piece := strings.Join(h.Values("Content-Range"), ", "); piece != "" &&
		!isWhole(piece, length) {
		return Piece("Content-Range")
	}
	for name, plain := range map[string][]string{
		"Content-Encoding":          {"identity"},
		"Content-Transfer-Encoding": {"7bit", "8bit", "binary"},
	} {
		coding := strings.ToLower(strings.Join(h.Values(name), ", "))
		if coding != "" && !slices.Contains(plain, coding) {
			return &fault.Fault{
				Kind:  fault.Unsupported,
				Allow: []string{"identity"},
				Detail: fmt.Sprintf("send the bytes as they are: the %s %.40q is not supported",
					name, coding),
			}
		}
	}
	return nil
}

// Piece returns the fault for a request that sends a piece of a file as if it were the whole file.
// what is the header or parameter that says so.
func Piece(what string) error {
	return fault.New(
		fault.Invalid, "the %s says that this is a piece of a file: to send a file in parts, begin an upload session with POST /uploads", what,
	)
}

// isWhole reports whether a Content-Range covers all of a file.
func isWhole(piece string, length int64) bool {
	_, total, _ := strings.Cut(piece, "/")
	n, err := strconv.ParseInt(total, 10, 64)
	return err == nil &&
		piece == fmt.Sprintf("bytes 0-%d/%d", n-1, n) &&
		(length < 0 || length == n)
}

// checkContent is CheckContent for a whole request. Bodies of methods other than POST, PUT and
// PATCH are never read.
func checkContent(r *http.Request) error {
	length := r.ContentLength
	if strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "multipart/") {
		length = -1
	}
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, r.Method) {
		return nil
	}
	return CheckContent(r.Header, length)
}

// LongBody lets the body of a request that came through Outlet.Handler take as long as it needs,
// provided that it keeps coming. It is for files, once it is clear that the caller may send one.
func LongBody(r *http.Request) {
	if b, ok := r.Body.(*requestBody); ok {
		b.long = true
	}
}

// detach returns a context that, once the body has arrived in full, does not end when the client is
// gone: the server mistakes a client that shuts down its half of the connection for one that is
// gone. Lambda, whose contexts have deadlines, does not make that mistake. end must be called.
func (b *requestBody) detach(parent context.Context) (ctx context.Context, end func()) {
	if _, isLambda := parent.Deadline(); isLambda {
		return parent, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		b.reading.Lock() // the server may see the end of the connection before Read returns the end of the body
		defer b.reading.Unlock()
		if b.err != io.EOF {
			cancel()
		}
	})
	return ctx, func() { stop(); cancel() }
}

// wrapBody returns the request with a requestBody, which is at its end if there is no body. The
// request is a copy: if the body of the server's own request were replaced, the server would read
// that body before it answers, even if the client waits for the answer.
func wrapBody(
	w http.ResponseWriter,
	r *http.Request,
	c *fault.Caller,
) (*http.Request, *requestBody) {
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
func (b *requestBody) drain(places chan struct{}) {
	if b.err == io.EOF || b.control.Flush() != nil {
		return
	}
	wait := drainTime
	select {
	case places <- struct{}{}: // never if it is nil
		defer func() { <-places }()
		wait = longDrain
	default:
	}
	b.long = false // so that Read does not move the deadline
	end, most := time.Now().Add(wait), b.Received+maxDrained
	buffer := make([]byte, 32<<10)
	for b.err == nil && b.Received < most {
		pause := time.Now().Add(drainTime)
		if pause.After(end) {
			pause = end
		}
		if b.control.SetReadDeadline(pause) != nil {
			return
		}
		_, _ = b.Read(buffer)
	}
	_ = b.control.SetReadDeadline(time.Now()) // otherwise the server would wait for the rest
}
