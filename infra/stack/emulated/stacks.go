package emulated

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"sync"
)

// Stacks lends a stack with an empty table and empty buckets for each POST,
// which answers with a description, and takes it back for DELETE of its name.
type Stacks struct {
	Open func() (*Cloud, error)

	mu    sync.Mutex
	count int
	lent  map[string]*Stack
	spare []*Stack
}

// ServeHTTP implements http.Handler.
func (s *Stacks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	switch r.Method {
	case http.MethodPost:
		var it *Stack
		if it, err = s.lend(r.Context()); err == nil {
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(it.Deployed) // a client that has gone needs no answer
		}
	case http.MethodDelete:
		if err = s.takeBack(r.Context(), path.Base(r.URL.Path)); err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *Stacks) lend(ctx context.Context) (it *Stack, err error) {
	s.mu.Lock()
	if n := len(s.spare); n > 0 {
		it, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	s.count++
	name := fmt.Sprintf("lent-%d", s.count)
	s.mu.Unlock()
	if it == nil {
		c, err := s.Open()
		if err != nil {
			return nil, err
		}
		if it, err = c.Deploy(ctx, name, nil); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent == nil {
		s.lent = map[string]*Stack{}
	}
	s.lent[it.Name] = it
	return it, nil
}

func (s *Stacks) takeBack(ctx context.Context, name string) error {
	s.mu.Lock()
	it := s.lent[name]
	delete(s.lent, name)
	s.mu.Unlock()
	if it == nil {
		return fmt.Errorf("the stack %s is not lent", name)
	}
	if err := it.Empty(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, it)
	return nil
}
