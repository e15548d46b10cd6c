package local_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ferry/shared/boot/apitest"
)

// TestGuessesAtOnceAreSlowedDownLikeGuessesInTurn sends guesses to several endpoints,
// which share one count.
func TestGuessesAtOnceAreSlowedDownLikeGuessesInTurn(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	var refused, waits atomic.Int64
	var wg sync.WaitGroup
	const guesses = 60
	for i := range guesses {
		guess := fmt.Sprint("guess ", i)
		r := httptest.NewRequest("POST", "/v1/auth/login", nil)
		switch i % 3 {
		case 1:
			r = httptest.NewRequest("GET", "/v1/download/list", nil)
		case 2:
			r = httptest.NewRequest("POST", "/v1/oauth2/token", strings.NewReader("grant_type=password&username=alice&password="+strings.ReplaceAll(guess, " ", "+")))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if i%3 != 2 {
			r.SetBasicAuth("alice", guess)
		}
		wg.Go(func() {
			w := httptest.NewRecorder()
			s.HTTP.Config.Handler.ServeHTTP(w, r)
			switch w.Code {
			case 401:
				refused.Add(1)
			case 429:
				waits.Add(1)
			}
		})
	}
	wg.Wait()
	// Five, and one more for each wait that ends during a slow test.
	if refused.Load() > 8 || refused.Load()+waits.Load() != guesses {
		t.Errorf("%d are answered with 401 and %d with 429", refused.Load(), waits.Load())
	}
}
