package files_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/files"
	"ferry/shared/table"
)

// slowTable and slowStore are as slow as those in the cloud, by a clock of their own. They
// hold expired files of one user, and take 190 ms for a move.
type slowTable struct {
	table.Table
	*slow
}

type slowStore struct {
	blob.Store
	*slow
}

type slow struct {
	mu       sync.Mutex
	keys     []string
	ids      map[int64]string // the keys of what is left in the user area
	huge     string           // takes an hour to copy
	copied   int
	finished time.Time // of the last copy but that one
}

func (t slowTable) Get(_ context.Context, key table.Key, into any) error {
	time.Sleep(10 * time.Millisecond)
	if u, ok := into.(*auth.User); ok {
		*u = auth.User{Name: "alice", LastFile: 1 << 40}
		return nil
	}
	return table.ErrNotFound
}

func (t slowTable) GetMany(_ context.Context, keys ...table.Key) ([]table.Item, error) {
	time.Sleep(10 * time.Millisecond)
	items := make([]table.Item, len(keys))
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, key := range keys {
		id := int64(0)
		_, _ = fmt.Sscanf(key.SK, "%d", &id)
		if blobKey, ok := t.ids[id]; ok && key.PK == "files#alice" {
			items[i] = table.NewItem(key, nil, func(_ table.Item, into any) error {
				*into.(*files.File) = files.File{Owner: "alice", Area: blob.Files, ID: id, Blob: blobKey, Expires: 1}
				return nil
			})
		}
	}
	return items, nil
}

func (t slowTable) Query(context.Context, table.Query) (table.Page, error) { return table.Page{}, nil }

func (t slowTable) Write(_ context.Context, ops ...table.Op) error {
	time.Sleep(time.Duration(5+5*min(len(ops), 3)) * time.Millisecond)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, op := range ops {
		if id := int64(0); op.Kind == table.KindDelete && op.Key.PK == "files#alice" {
			_, _ = fmt.Sscanf(op.Key.SK, "%d", &id)
			delete(t.ids, id)
		}
	}
	return nil
}

func (s slowStore) List(_ context.Context, area blob.Area, after string, limit int) ([]blob.Object, error) {
	time.Sleep(80 * time.Millisecond)
	if area == blob.Backup {
		return nil, nil
	}
	i, found := slices.BinarySearch(s.keys, after)
	if found {
		i++
	}
	var page []blob.Object
	for _, key := range s.keys[i:min(i+limit, len(s.keys))] {
		page = append(page, blob.Object{Key: key})
	}
	return page, nil
}

func (s slowStore) Copy(ctx context.Context, _ blob.Area, key string, _ blob.Area, _ string) error {
	wait := 80 * time.Millisecond
	if key == s.huge {
		wait = time.Hour
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.copied++; key != s.huge {
		s.finished = time.Now()
	}
	return nil
}

func (s slowStore) Delete(context.Context, blob.Area, string) error {
	time.Sleep(60 * time.Millisecond)
	return nil
}

func (s slowStore) Sweep(context.Context, time.Time, func(string) bool) (int, error) { return 0, nil }

// TestAMillionMovesTakeFourHours moves a fiftieth of that with 50 at once, among them one that
// takes an hour, which delays no other and is stepped over.
func TestAMillionMovesTakeFourHours(t *testing.T) {
	const stored = 20_000
	synctest.Test(t, func(t *testing.T) {
		s := &slow{ids: map[int64]string{}}
		for i := range stored {
			key := fmt.Sprintf("D%x-1999-12-31/%d-%022d-alice", i%16, i+1, i)
			s.keys, s.ids[int64(i+1)] = append(s.keys, key), key
		}
		s.huge = s.keys[5]
		slices.Sort(s.keys)
		key, err := auth.ParseLinkKey(boottest.Key)
		if err != nil {
			t.Fatal(err)
		}
		p := &api.Ports{
			Ports: auth.Ports{Table: slowTable{slow: s}, Key: key, Random: rand.Reader, Now: time.Now},
			Blobs: slowStore{slow: s}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		}
		begun := time.Now()
		sweeper := files.Sweeper{Service: file.Service(p), Log: p.Log, Grace: time.Hour, AtOnce: 50}
		r, err := sweeper.Run(t.Context())
		if err != nil || r.Moved != stored-1 || r.Failed != 1 || s.copied != stored-1 {
			t.Fatalf("the sweep reported %+v, %v", r, err)
		}
		if took := s.finished.Sub(begun); took > 4*time.Hour*stored/1_000_000 {
			t.Errorf("%d moves took %v", stored, took)
		} else {
			t.Logf("%d moves took %v, and the sweep %v", stored, took, time.Since(begun))
		}
	})
}
