package local_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/files"
)

// gate holds copies up until it is opened.
type gate struct {
	blob.Store
	open chan struct{}
}

func (g gate) Copy(ctx context.Context, from blob.Area, fromKey string, to blob.Area, toKey string) error {
	select {
	case <-g.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	return g.Store.Copy(ctx, from, fromKey, to, toKey)
}

// TestADeletionDoesNotWaitForTheBytes has one mover for three files: the first waits for its
// bytes, the others are left to a sweep, as is the first if the service ends.
func TestADeletionDoesNotWaitForTheBytes(t *testing.T) {
	t.Parallel()
	for what, moved := range map[string]int{"the bytes move": 2, "the service ends": 3} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d, err := local.Open(dir, api.Settings{Movers: 1}, local.Options{NoSync: true})
				check(t, err)
				defer d.Close()
				alice := auth.User{Name: "alice", State: auth.Active}
				check(t, auth.NewUsers(d.Ports.Table, d.Ports.Now).Add(t.Context(), alice))
				g := gate{d.Ports.Blobs, make(chan struct{})}
				d.Ports.Blobs = g
				s, err := local.NewService(d.Ports, local.ServiceOptions{From: "ferry@example.com"})
				check(t, err)
				service := file.Service(d.Ports)
				up, err := service.Begin(t.Context(), "alice", alice, 3, files.Sending{})
				check(t, err)
				for range 3 {
					check(t, up.Add(t.Context(), files.Part{Name: "a", Body: strings.NewReader("1"), Size: 1}))
				}
				_, err = up.Commit(t.Context(), 0)
				check(t, err)
				for id := range int64(3) {
					_, err := service.Delete(t.Context(), alice, id+1)
					check(t, err)
				}
				running, end := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { s.Run(running); close(ended) }()
				if moved == 2 {
					close(g.open)
					synctest.Wait()
				}
				end()
				<-ended
				if moved == 3 {
					close(g.open)
				}
				if r, err := s.Sweep(t.Context()); err != nil || r.Moved != moved {
					t.Errorf("the sweep reported %+v, %v; %d were left to it", r, err, moved)
				}
			})
		})
	}
}
