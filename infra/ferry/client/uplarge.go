package client

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
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"ferry/infra/ferry/cli"
	"ferry/shared/bundle"
	"ferry/shared/client"
	"ferry/shared/wire"
)

// state is what the client remembers of an upload in parts until the upload ends.
type state struct {
	path    string
	Key     string `json:"key"`     // Idempotency-Key of its session
	Session string `json:"session"` // empty until the service has answered
	// Password is a slow hash of the links' password: with a different password, nothing is resumed.
	Password string            `json:"password,omitempty"`
	File     string            `json:"file"`  // for people who read this file
	Marks    map[string]string `json:"marks"` // of the files, by name
}

// markOf returns a text that changes whenever the file changes.
func markOf(e bundle.Entry) string {
	if e.IsFolder() {
		return "folder"
	}
	return fmt.Sprint(e.Length, e.Modified.UnixNano(), e.Executable)
}

// stateFolder creates the folder of the states, in the user's cache.
func stateFolder() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", cli.Fail(cli.ExitSettings, "there is no cache folder: %w", err)
	}
	dir = filepath.Join(dir, "ferry", "uploads")
	return dir, os.MkdirAll(dir, 0o700)
}

// readState returns the state left by an earlier upload from the same paths, by the same user, to
// the same place, or else a new one. If a file has changed since then, it prints which one.
func (u *uploader) readState(
	ctx context.Context, name string, paths []string, marks map[string]string,
) (*state, error) {
	dir, err := stateFolder()
	if err != nil {
		return nil, err
	}
	where := make([]string, len(paths))
	for i, path := range paths {
		if where[i], err = filepath.Abs(path); err != nil {
			return nil, err
		}
		where[i] = wire.UTF8(where[i]) // JSON would turn all other bytes into the same one
	}
	d := u.delivery()
	d.Password = "" // a fast hash of it could be tested with guesses
	of, err := json.Marshal([]any{
		u.client.URL(), u.client.user, where, d, u.Name, u.PartSize, u.SHA256,
	})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(of)
	s := &state{path: filepath.Join(dir, hex.EncodeToString(sum[:16])+".json")}
	if text, err := os.ReadFile(s.path); err == nil &&
		s.restore(text) &&
		s.Password == slowHash(u.secret, s.Key) {
		what := difference(s.Marks, marks)
		if what == "" {
			return s, nil
		}
		u.meter.Print(
			u.out.Err,
			"%s since the upload of %s began, so it starts again",
			what,
			name,
		)
		u.abort(ctx, s)
	}
	*s = state{path: s.path, Key: rand.Text(), File: where[0], Marks: marks}
	s.Password = slowHash(u.secret, s.Key)
	return s, writePrivate(s.path, s)
}

// slowHash returns a hash of a password that is slow to test guesses against, or "" for no password.
func slowHash(password, salt string) string {
	if password == "" {
		return ""
	}
	return hex.EncodeToString(argon2.IDKey([]byte(password), []byte(salt), 2, 19<<10, 1, 32)) // like the service does
}

// difference says what has happened to the first file that differs, or returns "".
func difference(before, now map[string]string) string {
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if was, known := before[path]; !known {
			return path + " is new"
		} else if was != now[path] {
			return path + " has changed"
		}
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if _, there := now[path]; !there {
			return path + " is gone"
		}
	}
	return ""
}

// restore reads a state file's content, and reports whether it is usable: a key that no header can
// carry would make each try fail.
func (s *state) restore(text []byte) bool {
	return json.Unmarshal(text, s) == nil && s.Key != "" && inHeader(s.Key+s.Session)
}

// inHeader reports whether a header can carry a text that was read from a file.
func inHeader(text string) bool {
	return len(text) < 512 &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
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
func (u *uploader) large(
	ctx context.Context,
	name string,
	file *os.File,
	info fs.FileInfo,
) (client.File, error) {
	src := client.Source{
		Name:    name,
		Type:    kind(name),
		Length:  info.Size(),
		Content: file,
		Check: func() error {
			now, err := file.Stat()
			if err == nil && !same(now, info) {
				err = client.ErrChanged
			}
			return err
		},
	}
	if u.SHA256 {
		sum := sha256.New()
		if _, err := io.Copy(sum, cli.Interruptible(ctx, io.NewSectionReader(file, 0, info.Size()))); err != nil {
			return client.File{}, fmt.Errorf("reading %s: %w", name, err)
		}
		src.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	mark := markOf(bundle.Entry{Length: info.Size(), Modified: info.ModTime()})
	return u.resumable(ctx, src, []string{file.Name()}, map[string]string{name: mark})
}

// same reports whether a file seems unchanged.
func same(now, before fs.FileInfo) bool {
	return now.Size() == before.Size() && now.ModTime().Equal(before.ModTime())
}

// resumable uploads in parts. The upload can be resumed if there is a place for its state.
func (u *uploader) resumable(
	ctx context.Context, src client.Source, paths []string, marks map[string]string,
) (client.File, error) {
	s, err := u.readState(ctx, src.Name, paths, marks)
	if err != nil {
		u.meter.Say("the upload of %s cannot be resumed later: %s", src.Name, cli.Explain(err))
		return u.put(ctx, src, nil)
	}
	f, err := u.put(ctx, src, s)
	changed := errors.Is(err, client.ErrChanged)
	if changed {
		u.abort(ctx, s)
	}
	if err == nil || changed || client.StatusOf(err) == 410 { // deleted since: the next run uploads it again
		_ = os.Remove(s.path) // if this fails, forgetOldStates removes it later
	}
	return f, err
}

// abort ends the session of an upload that nobody can resume. If this fails, the session expires.
func (u *uploader) abort(ctx context.Context, s *state) {
	if s.Session != "" {
		_ = u.client.Abort(ctx, s.Session)
	}
}

// put uploads in parts; s is nil if the upload cannot be resumed.
func (u *uploader) put(ctx context.Context, src client.Source, s *state) (client.File, error) {
	o := client.PutOptions{
		Delivery:    u.delivery(),
		Connections: u.Connections,
		PartSize:    int64(u.PartSize),
		Progress:    u.meter.Add,
		Had:         u.meter.Had,
	}
	if s != nil {
		resumed := s.Session
		o.Key, o.Session = s.Key, s.Session
		o.Began = func(session client.Session) error {
			if session.ID == resumed {
				u.meter.Say("resuming the upload of %s", src.Name)
				return nil
			}
			s.Session = session.ID
			return writePrivate(s.path, s)
		}
	}
	return u.client.Put(ctx, src, o)
}
