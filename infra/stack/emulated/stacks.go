package emulated

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Lend lends a stack with an empty table and empty buckets to each request, for as long as its
// client keeps the connection: the answer begins with the stack's description and ends when the
// client disconnects. The cloud is opened for the first request.
func Lend(open func() (*Cloud, error)) http.Handler {
	open, spare := sync.OnceValues(open), make(chan *Stack, 64)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var s *Stack
		var err error
		select {
		case s = <-spare:
		default:
			var c *Cloud
			if c, err = open(); err == nil {
				s, err = c.Deploy(
					r.Context(),
					"lent-"+strings.ToLower(rand.Text()[:8]),
					map[string]string{"SmsSending": "on"},
				)
			}
			if err == nil { // numbers are accepted, but tests send the messages themselves
				err = s.Pause(r.Context(), "Sms", true)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(s.Deployed) // a client that has gone needs no answer
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		if s.Empty(context.WithoutCancel(r.Context())) == nil { // otherwise it is not lent again
			time.Sleep(2 * time.Second) // functions remember links for 1 s, and the next files have the same tokens
			spare <- s
		}
	})
}
