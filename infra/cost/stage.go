package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/files"

	"ferry/shared/auth"
)

// stage is a stack with users and files.
type stage struct {
	*lab
	bearer string
	users  int
}

func newStage(ctx context.Context, l *lab) (*stage, error) {
	s := &stage{lab: l}
	err := s.user(ctx, auth.User{Name: alice, State: auth.Active, Email: "alice@example.com"})
	if err != nil {
		return nil, err
	}
	_, s.bearer, err = auth.New(l.raw.Ports).Login(ctx, alice, password, "203.0.113.7")
	return s, err
}

// fill fills alice's area, and the backup area if asked to.
func (s *stage) fill(ctx context.Context, areas ...blob.Area) error {
	for range areaSize {
		if _, err := s.put(ctx, small, files.Sending{}); err != nil {
			return err
		}
	}
	for range areas {
		for range areaSize {
			if _, err := s.putAway(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stage) user(ctx context.Context, u auth.User) (err error) {
	if u.Password, err = s.raw.Hasher.Hash(ctx, password); err != nil {
		return err
	}
	return auth.NewUsers(s.raw.Table, s.raw.Now).Add(ctx, u)
}

// another adds a user of whom there was none.
func (s *stage) another(ctx context.Context, state auth.UserState) (string, error) {
	s.users++
	name := fmt.Sprintf("user%d", s.users)
	return name, s.user(ctx, auth.User{Name: name, State: state, Email: name + "@example.com"})
}

// put stores a file of alice.
func (s *stage) put(ctx context.Context, size int64, sending files.Sending) (id int64, err error) {
	up, err := file.Service(s.raw).Begin(ctx, alice, auth.User{Name: alice}, size, sending)
	if err != nil {
		return 0, err
	}
	if err := up.Add(ctx, files.Part{Name: "report.pdf", Type: "application/pdf", Body: io.LimitReader(zeros{}, size), Size: size}); err != nil {
		return 0, err
	}
	stored, err := up.Commit(ctx)
	if err != nil {
		return 0, err
	}
	return stored[0].ID, nil
}

// putAway stores one in the backup area.
func (s *stage) putAway(ctx context.Context) (id int64, err error) {
	if id, err = s.put(ctx, small, files.Sending{}); err != nil {
		return 0, err
	}
	owner, err := auth.NewUsers(s.raw.Table, s.raw.Now).Get(ctx, alice)
	if err != nil {
		return 0, err
	}
	_, err = file.Service(s.raw).Delete(ctx, owner, id)
	return id, err
}

// zeros are the bytes of all files.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

// ask sends a request to the API. A header whose value is bearer gets alice's.
func (s *stage) ask(ctx context.Context, status int, method, path string, body io.Reader, headers ...string) (*http.Response, error) {
	r := httptest.NewRequestWithContext(ctx, method, "https://gateway.example/v1"+path, body)
	for i := 0; i < len(headers); i += 2 {
		value := headers[i+1]
		if value == "bearer" {
			value = "Bearer " + s.bearer
		}
		r.Header.Set(headers[i], value)
	}
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	if w.Code != status {
		return nil, fmt.Errorf("%s %s: status %d (%s)", method, path, w.Code, w.Header().Get("Ferry-Error"))
	}
	return w.Result(), nil
}

func basic(name string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(name, password)
	return r.Header.Get("Authorization")
}
