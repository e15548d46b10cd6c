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

	"ferry/shared/client"
)

// state is what is remembered of an upload in parts until it has ended.
type state struct {
	path    string
	Key     string `json:"key"`     // Idempotency-Key of its session
	Session string `json:"session"` // empty until the service has answered
	File    string `json:"file"`    // for who looks
}

// cacheFolder makes a folder in the user's cache.
func cacheFolder(name string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", &coded{exitSettings, fmt.Errorf("there is no cache folder: %w", err)}
	}
	dir = filepath.Join(dir, "ferry", name)
	return dir, os.MkdirAll(dir, 0o700)
}

// readState finds what an earlier try to upload the same file, by the same
// user, to the same place has left; or begins anew.
func (u *uploader) readState(path string, info fs.FileInfo) (*state, error) {
	dir, err := cacheFolder("uploads")
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	what, err := json.Marshal([]any{
		u.client.URL(), u.user, path, info.Size(), info.ModTime().UnixNano(), u.delivery(), u.Name, u.SHA256, u.PartSize,
	})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(what)
	s := &state{path: filepath.Join(dir, hex.EncodeToString(sum[:16])+".json")}
	text, err := os.ReadFile(s.path)
	if err == nil && json.Unmarshal(text, s) == nil && s.Key != "" {
		return s, nil
	}
	s.Key, s.Session, s.File = rand.Text(), "", path
	return s, s.write()
}

func (s *state) write() error { return writePrivate(s.path, s) }

// forgetOldStates removes those whose sessions have ended by now, and what a
// killed upload of standard input has left.
func forgetOldStates(now time.Time) {
	for _, name := range []string{"uploads", "spool"} {
		dir, err := cacheFolder(name)
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
}

// forgetSession removes the state of a session that was ended.
func forgetSession(id string) {
	dir, err := cacheFolder("uploads")
	if err != nil {
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		var s state
		if err == nil && strings.HasSuffix(path, ".json") && json.Unmarshal(text, &s) == nil && s.Session == id {
			_ = os.Remove(path)
		}
	}
}

// large uploads a file in parts, and goes on with what is there.
func (u *uploader) large(ctx context.Context, name string, file *os.File, info fs.FileInfo) (client.File, error) {
	s, err := u.readState(file.Name(), info)
	if err != nil {
		u.meter.say("the upload of %s could not be gone on with: %s", printable(name), explain(err))
		s = nil
	}
	f, err := u.put(ctx, name, file, info, s)
	if s == nil {
		return f, err
	}
	if errors.Is(err, client.ErrChanged) && s.Session != "" {
		_ = u.client.Abort(ctx, s.Session) // or it ends with its time: nobody can go on with it
	}
	if err == nil || errors.Is(err, client.ErrChanged) {
		_ = os.Remove(s.path) // or it goes with its age
	}
	return f, err
}

// put uploads in parts; s is nil for what cannot be gone on with.
func (u *uploader) put(ctx context.Context, name string, file *os.File, info fs.FileInfo, s *state) (client.File, error) {
	src := client.Source{Name: name, Type: kind(name), Length: info.Size(), Content: file, Check: func() error {
		now, err := file.Stat()
		if err == nil && (now.Size() != info.Size() || !now.ModTime().Equal(info.ModTime())) {
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
	o := client.PutOptions{Delivery: u.delivery(), Connections: u.Connections, PartSize: u.PartSize, Progress: u.meter.add}
	if s == nil {
		return u.client.Put(ctx, src, o)
	}
	resumed := s.Session
	o.Key, o.Session = s.Key, s.Session
	o.Began = func(session client.Session) error {
		if session.ID == resumed {
			u.meter.say("going on with the upload of %s", printable(name))
			return nil
		}
		s.Session = session.ID
		return s.write()
	}
	return u.client.Put(ctx, src, o)
}
