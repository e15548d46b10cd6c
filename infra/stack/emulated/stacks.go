package emulated

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
)

// Lend lends a stack with an empty table and empty buckets to each request, for
// as long as its client keeps the connection: the answer begins with the stack's
// description and ends when the client goes. The cloud is opened when the first
// client comes.
func Lend(open func() (*Cloud, error)) http.Handler {
	var deployed atomic.Int64
	open, spare := sync.OnceValues(open), make(chan *Stack, 64)
	take := func(ctx context.Context) (*Stack, error) {
		select {
		case s := <-spare:
			return s, nil
		default:
		}
		c, err := open()
		if err != nil {
			return nil, err
		}
		return c.Deploy(ctx, fmt.Sprintf("lent-%d", deployed.Add(1)), nil)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := take(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(s.Deployed) // a client that has gone needs no answer
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		if s.Empty(context.WithoutCancel(r.Context())) == nil { // else it is lent no more
			spare <- s
		}
	})
}
