package local_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/service"
	"ferry/shared/users"
)

// copies is a store that copies once first has returned nil.
type copies struct {
	blob.Store
	first func(context.Context) error
}

func (s copies) Copy(ctx context.Context, from blob.Area, fromKey string, to blob.Area, toKey string) error {
	if err := s.first(ctx); err != nil {
		return err
	}
	return s.Store.Copy(ctx, from, fromKey, to, toKey)
}

// deleting returns a service with one mover, which calls first before each copy, and the last of the
// files that its user has stored and deleted.
func deleting(t *testing.T, dir string, n int64, first func(context.Context) error) (*local.Service, files.File) {
	t.Helper()
	d, err := local.Open(dir, local.Options{NoSync: true})
	expect.NoErr(t, err)
	t.Cleanup(func() { expect.NoErr(t, d.Close()) })
	alice := users.User{Name: "alice", State: users.Active}
	expect.NoErr(t, (&users.Service{Table: d.Ports.Table, Now: d.Ports.Now}).Add(t.Context(), alice))
	d.Ports.Blobs = copies{d.Ports.Blobs, first}
	s, err := local.NewService(d.Ports, service.Settings{Movers: 1}, local.ServiceOptions{From: "ferry@example.com"})
	expect.NoErr(t, err)
	up, err := s.Files().Begin(t.Context(), "alice", files.By{User: "alice"}, n, files.Sending{})
	expect.NoErr(t, err)
	for range n {
		expect.NoErr(t, up.Add(t.Context(), files.Part{Name: "a", Body: strings.NewReader("1"), Size: 1}))
	}
	_, err = up.Commit(t.Context(), 0)
	expect.NoErr(t, err)
	var deleted *files.Listed
	for id := range n {
		deleted, err = s.Files().Delete(t.Context(), alice, id+1)
		expect.NoErr(t, err)
	}
	return s, deleted.File
}

// TestADeletionDoesNotWaitForTheBytes has one mover for three files: the first waits for its
// bytes, the others are left to a sweep, as is the first if the service ends. Beside a stack,
// whose functions do the background work, the service does not run.
func TestADeletionDoesNotWaitForTheBytes(t *testing.T) {
	t.Parallel()
	for what, moved := range map[string]int{"the bytes move": 2, "the service ends": 3, "beside a stack it ends": 3} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				open := make(chan struct{})
				s, _ := deleting(t, dir, 3, func(ctx context.Context) error {
					select {
					case <-open:
					case <-ctx.Done():
					}
					return ctx.Err()
				})
				running, end := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					if strings.HasPrefix(what, "beside") {
						s.EndMoves()
					} else {
						s.Run(running)
					}
					close(ended)
				}()
				if moved == 2 {
					close(open)
					synctest.Wait()
				}
				end()
				<-ended
				if moved == 3 {
					close(open)
				}
				if r, err := s.Sweep(t.Context()); err != nil || r.Moved != moved {
					t.Errorf("the sweep reported %+v, %v; %d were left to it", r, err, moved)
				}
			})
		})
	}
}

// TestAMoverThatHangsTriesAgain has the first try never end by itself.
func TestAMoverThatHangsTriesAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		s, deleted := deleting(t, dir, 1, func(ctx context.Context) error {
			if tries++; tries == 1 {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		time.Sleep(time.Hour)
		s.EndMoves()
		if _, err := s.Blobs.Open(t.Context(), blob.Backup, deleted.Blob); err != nil || tries != 2 {
			t.Errorf("after %d tries: %v", tries, err)
		}
	})
}
