package browsertest

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Line is a line through which parts of uploads reach a service.
type Line struct {
	Rate  atomic.Int64 // the bytes per second that it lets through, over all connections together; 0 means no limit
	Taken atomic.Int64 // the bytes that came through
	Open  atomic.Int64 // the parts that are under way
	turn  sync.Mutex
}

// Narrow puts a line in front of a service's handler.
func Narrow(before *http.Handler, rate int64) *Line {
	l, next := &Line{}, *before
	l.Rate.Store(rate)
	*before = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/parts/") {
			l.Open.Add(1)
			defer l.Open.Add(-1)
			r.Body = slowBody{r.Body, l}
		}
		next.ServeHTTP(w, r)
	})
	return l
}

type slowBody struct {
	io.ReadCloser
	*Line
}

func (b slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.Taken.Add(int64(n))
	b.turn.Lock()
	defer b.turn.Unlock()
	if rate := b.Rate.Load(); rate > 0 {
		time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
	}
	return n, err
}
