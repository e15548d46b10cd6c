package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"sync"

	"ferry/infra/assembly"
)

// stack is one that runs.
type stack interface {
	Describe() assembly.Description
	Close() error
}

// stacks makes a stack for each POST and ends it for DELETE of its name.
type stacks struct {
	start func(ctx context.Context, name string) (stack, error)

	mu    sync.Mutex
	count int
	all   map[string]stack
}

// ServeHTTP implements http.Handler.
func (s *stacks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		d, err := s.add(r.Context(), s.name())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(d) // who has gone needs no answer
	case http.MethodDelete:
		s.mu.Lock()
		it := s.all[path.Base(r.URL.Path)]
		delete(s.all, path.Base(r.URL.Path))
		s.mu.Unlock()
		if it != nil {
			it.Close()
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *stacks) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return fmt.Sprintf("stack-%d", s.count)
}

// add starts a stack, which close ends.
func (s *stacks) add(ctx context.Context, name string) (assembly.Description, error) {
	it, err := s.start(ctx, name)
	if err != nil {
		return assembly.Description{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[name] = it
	return it.Describe(), nil
}

func (s *stacks) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.all {
		it.Close()
	}
}
