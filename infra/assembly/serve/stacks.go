package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"sync"

	"ferry/infra/assembly"
)

// stacks makes a stack for each POST and ends it for DELETE of its name.
type stacks struct {
	programs string

	mu    sync.Mutex
	count int
	all   map[string]*assembly.Local
}

// ServeHTTP implements http.Handler.
func (s *stacks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		it, err := assembly.Start(r.Context(), assembly.LocalConfig{Root: ".", Programs: s.programs, Name: s.name(), Log: io.Discard})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.add(it)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(it.Description) // who has gone needs no answer
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

func (s *stacks) add(it *assembly.Local) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[it.Name] = it
}

func (s *stacks) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.all {
		it.Close()
	}
}
