package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ferry/shared/auth"
	"ferry/shared/client"
)

// state is what a client remembers of an upload in parts until it ends.
type state struct {
	path    string
	Key     string `json:"key"`     // Idempotency-Key of its session
	Session string `json:"session"` // empty until the service has answered
	// Password is a slow hash of the links' password: with another, nothing is resumed.
	Password string `json:"password,omitempty"`
	File     string `json:"file"`              // for people who read this file
	Members  []kept `json:"members,omitempty"` // of a bundle
}

// stateFolder creates the folder of the states, in the user's cache.
func stateFolder() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", &coded{exitSettings, fmt.Errorf("there is no cache folder: %w", err)}
	}
	dir = filepath.Join(dir, "ferry", "uploads")
	return dir, os.MkdirAll(dir, 0o700)
}

// readState returns the state left by an earlier upload from the same path, by the same user, to the
// same place, or else a new one. what tells apart what was at the path.
func (u *uploader) readState(ctx context.Context, path string, what ...any) (*state, error) {
	dir, err := stateFolder()
	if err != nil {
		return nil, err
	}
	d := u.delivery()
	password := d.Password
	d.Password = "" // a fast hash of it would be there to try guesses against
	of, err := json.Marshal([]any{
		u.client.URL(), u.client.user, path, what, d, password != "", u.Name, u.PartSize,
	})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(of)
	s := &state{path: filepath.Join(dir, hex.EncodeToString(sum[:16])+".json")}
	text, err := os.ReadFile(s.path)
	if err == nil && s.restore(text) && s.isFor(ctx, password) {
		return s, nil
	}
	*s = state{path: s.path, Key: rand.Text(), File: path}
	if err := s.protect(ctx, password); err != nil {
		return nil, err
	}
	return s, writePrivate(s.path, s)
}

// protect notes the password of the links.
func (s *state) protect(ctx context.Context, password string) error {
	s.Password = ""
	if password == "" {
		return nil
	}
	hasher, err := auth.NewHasher(auth.DefaultParams(), rand.Reader, time.Now)
	if err == nil {
		s.Password, err = hasher.Hash(ctx, password)
	}
	return err
}

// isFor reports whether the links of the earlier upload have this password.
func (s *state) isFor(ctx context.Context, password string) bool {
	if password == "" {
		return s.Password == ""
	}
	hasher, err := auth.NewHasher(auth.DefaultParams(), rand.Reader, time.Now)
	if err != nil {
		return false
	}
	same, err := hasher.Verify(ctx, s.Password, password)
	return err == nil && same
}

// restore reads what a state file holds, and reports whether it can be used: a key that
// no header can carry would fail each try.
func (s *state) restore(text []byte) bool {
	return json.Unmarshal(text, s) == nil && s.Key != "" && len(s.Key) < 256 &&
		!strings.ContainsFunc(s.Key+s.Session, func(r rune) bool { return r <= ' ' || r > '~' })
}

// forgetOldStates removes the states of sessions that have expired by now.
func forgetOldStates(now time.Time) {
	dir, err := stateFolder()
	if err != nil {
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > 8*24*time.Hour {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// large uploads a file in parts, and resumes an earlier upload of it.
func (u *uploader) large(ctx context.Context, name string, file *os.File, info fs.FileInfo) (client.File, error) {
	src := client.Source{Name: name, Type: kind(name), Length: info.Size(), Content: file, Check: func() error {
		now, err := file.Stat()
		if err == nil && !same(now, info) {
			err = client.ErrChanged
		}
		return err
	}}
	if u.SHA256 {
		sum := sha256.New()
		if _, err := io.Copy(sum, interruptible{ctx, io.NewSectionReader(file, 0, info.Size())}); err != nil {
			return client.File{}, fmt.Errorf("reading %s: %w", name, err)
		}
		src.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	path, err := filepath.Abs(file.Name())
	if err != nil {
		return client.File{}, err
	}
	s, err := u.readState(ctx, path, info.Size(), info.ModTime().UnixNano(), u.SHA256)
	return u.resumable(ctx, src, s, err)
}

// same reports whether a file seems to be as it was.
func same(now, before fs.FileInfo) bool {
	return now.Size() == before.Size() && now.ModTime().Equal(before.ModTime())
}

// resumable uploads in parts. If there is a state, it resumes or can be resumed; stateless says
// why there is none.
func (u *uploader) resumable(ctx context.Context, src client.Source, s *state, stateless error) (client.File, error) {
	if stateless != nil {
		u.meter.say("the upload of %s cannot be resumed later: %s", printable(src.Name), explain(stateless))
		return u.put(ctx, src, nil)
	}
	f, err := u.put(ctx, src, s)
	changed := errors.Is(err, client.ErrChanged)
	if changed {
		u.abort(ctx, s)
	}
	if err == nil || changed || client.StatusOf(err) == 410 { // deleted since: the next one uploads it anew
		_ = os.Remove(s.path) // if this fails, forgetOldStates removes it later
	}
	return f, err
}

// abort ends the session of an upload that nobody can resume. If this fails it expires.
func (u *uploader) abort(ctx context.Context, s *state) {
	if s.Session != "" {
		_ = u.client.Abort(ctx, s.Session)
	}
}

// put uploads in parts; s is nil if the upload cannot be resumed.
func (u *uploader) put(ctx context.Context, src client.Source, s *state) (client.File, error) {
	o := client.PutOptions{
		Delivery: u.delivery(), Connections: u.Connections, PartSize: int64(u.PartSize),
		Progress: u.meter.add, Had: u.meter.had,
	}
	if s != nil {
		resumed := s.Session
		o.Key, o.Session = s.Key, s.Session
		o.Began = func(session client.Session) error {
			if session.ID == resumed {
				u.meter.say("resuming the upload of %s", printable(src.Name))
				return nil
			}
			s.Session = session.ID
			return writePrivate(s.path, s)
		}
	}
	return u.client.Put(ctx, src, o)
}
