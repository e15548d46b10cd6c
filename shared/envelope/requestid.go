package envelope

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// maxLength bounds an id that was made elsewhere: it is stored with each notice.
const maxRequestID = 64

// requestIDKey is under which a context carries the id of a request to all that
// comes of it: the lines of the log, the notices and events that it makes, and
// through these the lines of those who send them.
type requestIDKey struct{}

// WithRequestID gives what is done under ctx the id of a request. What cannot be one is
// left out.
func WithRequestID(ctx context.Context, id string) context.Context {
	if !validRequestID(id) {
		return ctx
	}
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the id of the request that ctx is of, empty if it is of none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// NewRequestID makes an id.
func NewRequestID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// validRequestID knows the ids of API gateways, UUIDs and those of NewRequestID.
func validRequestID(id string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/.:"
	return id != "" && len(id) <= maxRequestID && strings.Trim(id, letters) == ""
}
