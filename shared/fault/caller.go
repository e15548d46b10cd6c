package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Caller is who makes a request, for the log. The code that checks a credential fills it in. It
// is for one goroutine.
type Caller struct {
	// Login is how the request logs in: basic, password (in a form), bearer, token (of a program),
	// pin, link, request (the link of a request for files), or session (the signed URL of a part).
	Login string
	// User is the existing user whom the credential is for; for a link it is the file's
	// owner. Other names are left out: people type passwords in the wrong field.
	User string
	// Accepted is set once the credential has been verified.
	Accepted bool

	// Status is the status of the answer, 0 until the answer begins. Received and Sent are how many
	// bytes of the two bodies have passed so far.
	Status         int
	Received, Sent int64
}

// Accept notes that the credential is right, and whose it is.
func (c *Caller) Accept(user string) { c.User, c.Accepted = user, true }

type callerKey struct{}

// CallerOf returns the caller of the request in ctx. It is never nil.
func CallerOf(ctx context.Context) *Caller {
	_, c := WithCaller(ctx)
	return c
}

// WithCaller returns a context with a new Caller, unless there is one.
func WithCaller(ctx context.Context) (context.Context, *Caller) {
	if c, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return ctx, c
	}
	ctx = NewCaller(ctx)
	return ctx, ctx.Value(callerKey{}).(*Caller)
}

// NewCaller returns a context with a Caller of its own.
func NewCaller(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, &Caller{})
}

// Refused reports whether a login was refused, judging by the status of the answer. A 429 means a
// login too soon after failed ones.
func (c *Caller) Refused(status int) bool {
	return c.Login != "" &&
		!c.Accepted &&
		(status == http.StatusUnauthorized || status == http.StatusTooManyRequests)
}

// Address returns the client's address; the zero Addr means that it is unknown.
func Address(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr // a gateway gives the address without a port
	}
	addr, _ := netip.ParseAddr(strings.Trim(host, "[]"))
	return addr.Unmap().WithZone("")
}

// maxLogID is the longest id from outside: ids are stored with each notice.
const maxLogID = 64

// logIDKey is the context key of a request's id. The id is in the log, in the notices
// and events that the request makes, and in the log of their senders.
type logIDKey struct{}

// WithLogID returns a context with the id of a request in the log. An invalid id is ignored.
func WithLogID(ctx context.Context, id string) context.Context {
	// Gateways' ids, UUIDs, and those of NewLogID have no other letters.
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/.:"
	if id == "" || len(id) > maxLogID || strings.Trim(id, letters) != "" {
		return ctx
	}
	return context.WithValue(ctx, logIDKey{}, id)
}

// LogID returns the id in the log of the request in ctx, empty if there is none.
func LogID(ctx context.Context) string {
	id, _ := ctx.Value(logIDKey{}).(string)
	return id
}

// NewLogID returns a random id.
func NewLogID() string { return fmt.Sprintf("%016x", rand.Uint64()) }
