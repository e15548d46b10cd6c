package envelope

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// Headers that say what is wrong with a request: the standard envelope has no room for it.
const (
	DetailHeader    = "Ferry-Error"     // one sentence
	ParameterHeader = "Ferry-Parameter" // the names of the parameters that it is about, if any
)

// LoginRefused is the message of the line that a refused login adds to the log.
const LoginRefused = "login refused"

// HandlerFunc handles a request. If it returns an error, that becomes the response,
// unless another response has begun.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// Outlet turns HandlerFuncs into handlers.
type Outlet struct {
	Now func() time.Time
	Log *slog.Logger
	// WriteError sends an error with this status; nil sends the envelope.
	WriteError func(w http.ResponseWriter, r *http.Request, status int) error
	// Links is for addresses that take a token in the query, and no password: a
	// browser must not ask for one if the token is wrong.
	Links bool
	// Base returns the service's address; empty if it is not known. The service's own pages may make
	// changes. If the address is https, browsers are told to remember that.
	Base func(context.Context) string
	// AnySite disables the cross-site check: the token in the query is the whole credential.
	AnySite bool
	// Lingering has a place for each refused client that may send for longer; nil has none.
	Lingering chan struct{}
}

// Handler wraps the handler of an endpoint: it gives each request an id, recovers
// panics, always answers, and logs one line.
func (o Outlet) Handler(f HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := o.Now()
		ctx, caller := fault.WithCaller(r.Context())
		failed, within := ctx.Value(withinKey{}).(*error)
		rec := &recorder{ResponseWriter: w, Caller: caller}
		id := fault.LogID(ctx)
		if id == "" {
			id = fault.NewLogID()
			ctx = fault.WithLogID(ctx, id)
		}
		r = r.WithContext(ctx)
		h := w.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		if r.TLS != nil || strings.HasPrefix(o.Base(r.Context()), "https://") {
			h.Set("Strict-Transport-Security", "max-age=31536000") // a year
		}
		r, body := wrapBody(w, tidyQuery(r), caller)
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			detached, end := body.detach(ctx)
			defer end()
			r = r.WithContext(detached)
		}
		err := o.checkSite(r)
		if err == nil {
			err = checkContent(r)
		}
		if err == nil {
			err = call(f, rec, r)
		}
		if err == nil && rec.Status == 0 {
			rec.WriteHeader(http.StatusOK)
		}
		if err != nil && rec.Status == 0 {
			body.answerEarly(w)
			if failed := o.fail(rec, r, err); failed != nil {
				err = errors.Join(err, failed)
			}
			defer body.drain(o.Lingering)
		}
		if within {
			*failed = err
		} else {
			o.log(r, rec, id, start, err, ctx.Err() != nil)
		}
		if err != nil && rec.failed == nil && rec.Status < 400 {
			// The response has begun: cut it, so that the client notices.
			panic(http.ErrAbortHandler)
		}
	})
}

type withinKey struct{}

// Within returns a context for a request that the handler of another request makes, in this process
// and for the same caller. The new request is not logged, and its error also goes to failed.
func Within(ctx context.Context, failed *error) context.Context {
	return context.WithValue(fault.NewCaller(ctx), withinKey{}, failed)
}

// IsWithin reports whether a request has such a context. The handler that makes such a request
// follows no redirects.
func IsWithin(ctx context.Context) bool { return ctx.Value(withinKey{}) != nil }

// checkSite refuses changes by pages of sites that are not allowed: a browser adds the password
// that it knows to the requests of any page. Requests without a browser's headers, and those that
// change nothing, pass.
func (o Outlet) checkSite(r *http.Request) error {
	cause := new(http.CrossOriginProtection).Check(r)
	if cause == nil || o.AnySite {
		return nil
	}
	allowed, _ := r.Context().Value(originsKey{}).(Origins)
	if u, err := url.Parse(o.Base(r.Context())); err == nil {
		own, _ := parseOrigin(u.Scheme + "://" + u.Host)
		allowed = append(slices.Clip(allowed), own)
	}
	if allowed.allow(r.Header.Get("Origin")) {
		return nil
	}
	return &fault.Fault{
		Kind:   fault.Forbidden,
		Detail: "a web page of another site may not do this",
		Cause:  cause,
	}
}

// call turns a panic into an error.
func call(f HandlerFunc, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f(w, r)
}

// fail answers with an error. If WriteError fails, fail returns its error and sends the envelope
// instead.
func (o Outlet) fail(w *recorder, r *http.Request, err error) (failed error) {
	f := classify(err)
	status := cmp.Or(int(f.Kind), http.StatusInternalServerError)
	w.failed = f
	h := w.Header()
	if f.Kind != fault.Unsatisfiable {
		h.Del("Content-Range") // it gives the file's length
	}
	for _, name := range []string{
		"Content-Disposition", "Content-Length", "Content-Type", "ETag", "Last-Modified", "Link", "Repr-Digest",
		"X-Amz-Checksum-Crc64nvme", "Accept-Ranges", "Cache-Control",
	} {
		h.Del(name) // meant for a success
	}
	if f.Kind != fault.Internal && f.Detail != "" {
		h.Set(DetailHeader, headerText(f.Detail))
	}
	if f.Parameter != "" {
		h.Set(ParameterHeader, f.Parameter)
	}
	if f.After > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.After.Seconds()))))
	}
	if allow := strings.Join(f.Allow, ", "); f.Kind == fault.Unsupported && allow != "" {
		h.Set("Accept-Encoding", allow)
	} else if allow != "" {
		h.Set("Allow", allow)
	}
	if status == http.StatusUnauthorized {
		if !o.Links && r.Header.Get("Sec-Fetch-Dest") != "empty" { // a script's request: the browser would ask
			h.Add("WWW-Authenticate", `Basic realm="ferry", charset="UTF-8"`)
		}
		h.Add("WWW-Authenticate", `Bearer realm="ferry"`)
	}
	if o.WriteError != nil {
		failed = call(func(w http.ResponseWriter, r *http.Request) error {
			return o.WriteError(w, r, status)
		}, w, r)
	}
	if o.WriteError == nil || failed != nil && w.Status == 0 {
		_ = WriteError(w, o.Now(), status) // the client may be gone
	}
	return failed
}

// classify returns the fault in err. Some errors of the ports become faults too.
func classify(err error) *fault.Fault {
	if f := fault.Of(err); f != nil {
		return f
	}
	tooLarge, _ := errors.AsType[*http.MaxBytesError](err)
	switch {
	case errors.Is(
		err,
		table.ErrBusy,
	), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE): // too many files are open
		return &fault.Fault{
			Kind:   fault.Unavailable,
			Detail: "the service is busy; try again",
			After:  time.Second,
		}
	case errors.Is(err, table.ErrFull), errors.Is(err, blob.ErrFull):
		return fault.New(
			fault.Full, "the service has no room left for this; nothing was stored",
		)
	case tooLarge != nil:
		return fault.New(fault.TooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	case errors.Is(err, context.DeadlineExceeded):
		return &fault.Fault{
			Kind:   fault.Unavailable,
			Detail: "the request took too long; try again",
			After:  time.Second,
			Cause:  err,
		}
	}
	return &fault.Fault{Kind: fault.Internal}
}

// headerText replaces characters that a header must not have.
func headerText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, s)
}

// tidyQuery returns a request whose query is read as its sender meant it: net/url drops a parameter
// with a semicolon, and & may have become &amp; on the way.
func tidyQuery(r *http.Request) *http.Request {
	if !strings.ContainsAny(r.URL.RawQuery, ";%") {
		return r
	}
	query := strings.ReplaceAll("&"+r.URL.RawQuery, ";", "%3B")
	r, address := r.WithContext(r.Context()), *r.URL
	address.RawQuery = strings.ReplaceAll(query, "&amp%3B", "&")[1:]
	r.URL = &address
	return r
}

// log writes the line of a request, and one more if its login was refused. Programs such as
// fail2ban read the second line: its first attributes and their order must not change.
func (o Outlet) log(
	r *http.Request,
	w *recorder,
	id string,
	start time.Time,
	err error,
	gone bool,
) {
	who := slices.DeleteFunc([]slog.Attr{
		slog.String(
			"address",
			fault.Address(r).String(),
		), slog.String("login", w.Login), slog.String("user", w.User),
	}, func(a slog.Attr) bool { return a.Value.String() == "" })
	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.String("id", id),
		slog.String("method", r.Method),
		slog.String("path", r.URL.Path), // never the query: it holds tokens
		slog.Int("status", w.Status),
		slog.Int64("bytes", w.Sent),
		slog.Float64("ms", float64(o.Now().Sub(start).Microseconds())/1000),
	}
	attrs = append(attrs, who...)
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
		switch {
		case gone:
			attrs = append(attrs, slog.Bool("clientGone", true))
		case w.failed == nil ||
			w.failed.Kind == fault.Internal ||
			w.Status >= 500 && w.failed.Cause != nil:
			level = slog.LevelError
		case w.Status >= 500: // callers can cause these: too many requests at once, a full disk
			level = slog.LevelWarn
		}
	}
	o.Log.LogAttrs(r.Context(), level, "request", attrs...)
	if w.failed != nil && w.Refused(int(w.failed.Kind)) {
		o.Log.LogAttrs(r.Context(), slog.LevelWarn, LoginRefused, append(
			who,
			slog.String("id", id),
		)...)
	}
}

// recorder notes what was sent. Its ReadFrom calls the server's own, so that the kernel
// can still send a file by itself.
type recorder struct {
	http.ResponseWriter
	*fault.Caller
	failed *fault.Fault
}

func (w *recorder) WriteHeader(status int) {
	if w.Status == 0 && status >= 200 {
		w.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	w.Sent += int64(n)
	return n, err
}

func (w *recorder) ReadFrom(r io.Reader) (int64, error) {
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := io.Copy(w.ResponseWriter, r)
	w.Sent += n
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
