package files_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/users"
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
	written  map[table.Key][]byte
	deleted  map[string]bool
	huge     string // takes long to copy
	left     time.Duration
	copied   int
	finished time.Time // of the last copy but that one
}

func (t slowTable) Get(_ context.Context, key table.Key, into any) error {
	time.Sleep(10 * time.Millisecond)
	return t.item(key).Decode(into)
}

// item returns what was written.
func (t slowTable) item(key table.Key) table.Item {
	t.mu.Lock()
	defer t.mu.Unlock()
	text, ok := t.written[key]
	if !ok {
		return table.Item{Key: key}
	}
	return table.NewItem(key, nil, func(_ table.Item, into any) error { return json.Unmarshal(text, into) })
}

func (t slowTable) GetMany(_ context.Context, keys ...table.Key) ([]table.Item, error) {
	time.Sleep(10 * time.Millisecond)
	items := make([]table.Item, len(keys))
	for i, key := range keys {
		items[i] = t.item(key)
		if key == users.Key("alice") {
			items[i] = table.NewItem(key, nil, func(_ table.Item, into any) error {
				*into.(*users.User) = users.User{Name: "alice", LastFile: 1 << 40}
				return nil
			})
		}
		id := int64(0)
		_, _ = fmt.Sscanf(key.SK, "%d", &id)
		t.mu.Lock()
		blobKey, ok := t.ids[id]
		t.mu.Unlock()
		if ok && key.PK == "files#alice" {
			items[i] = table.NewItem(key, nil, func(_ table.Item, into any) error {
				*into.(*files.File) = files.File{Owner: "alice", Area: blob.Files, ID: id, Blob: blobKey, Expires: 1}
				return nil
			})
		}
	}
	return items, nil
}

func (t slowTable) Query(_ context.Context, q table.Query) (page table.Page, _ error) {
	t.mu.Lock()
	written := maps.Clone(t.written)
	t.mu.Unlock()
	for key := range written {
		if key.PK == q.PK && q.PK == "due" && key.SK > q.After {
			page.Items = append(page.Items, t.item(key))
		}
	}
	return page, nil
}

func (t slowTable) Write(_ context.Context, ops ...table.Op) error {
	time.Sleep(time.Duration(5+5*min(len(ops), 3)) * time.Millisecond)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, op := range ops {
		if id := int64(0); op.Kind == table.KindDelete && op.Key.PK == "files#alice" {
			_, _ = fmt.Sscanf(op.Key.SK, "%d", &id)
			delete(t.ids, id)
		}
		delete(t.written, op.Key)
		if op.Kind == table.KindPut {
			t.written[op.Key], _ = json.Marshal(op.Value)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; i < len(s.keys) && len(page) < limit; i++ {
		if !s.deleted[s.keys[i]] {
			page = append(page, blob.Object{Key: s.keys[i]})
		}
	}
	return page, nil
}

// Copy goes on where it stopped.
func (s slowStore) Copy(ctx context.Context, _ blob.Area, key string, _ blob.Area, _ string) error {
	wait := 80 * time.Millisecond
	if key == s.huge {
		wait = s.left
		begun := time.Now()
		defer func() { s.left -= time.Since(begun) }()
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

func (s slowStore) Delete(_ context.Context, _ blob.Area, key string) error {
	time.Sleep(60 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted[key] = true
	return nil
}

func (s slowStore) Sweep(context.Context, time.Time, func(string) bool) (int, error) { return 0, nil }

// newSlow has this many files that expired long ago. One takes so long to copy.
func newSlow(stored int, long time.Duration) *slow {
	s := &slow{ids: map[int64]string{}, written: map[table.Key][]byte{}, deleted: map[string]bool{}, left: long}
	for i := range stored {
		key := fmt.Sprintf("D%x-1999-12-31/%d-%022d-alice", i%16, i+1, i)
		s.keys, s.ids[int64(i+1)] = append(s.keys, key), key
	}
	s.huge = s.keys[stored/4]
	slices.Sort(s.keys)
	return s
}

// run sweeps for some time, of which it keeps a fifteenth.
func (s *slow) run(t *testing.T, limit time.Duration) files.SweepReport {
	t.Helper()
	key, err := keys.Parse(boottest.Key)
	expect.NoErr(t, err)
	p := service.Ports{
		Table: slowTable{slow: s}, Key: key, Random: rand.Reader, Now: time.Now,
		Blobs: slowStore{slow: s}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	sweeper := files.Sweeper{
		Service: service.New(p, service.Settings{}).Files(),
		Grace:   time.Hour,
		Reserve: limit / 15,
		AtOnce:  50,
	}
	r, err := sweeper.Run(ctx)
	if err != nil || r.Failed != 0 || ctx.Err() != nil {
		t.Fatalf("the sweep reported %+v, %v", r, cmp.Or(err, ctx.Err()))
	}
	return r
}

// TestAMillionMovesTakeFourHours moves a fiftieth of that with 50 at once, in functions that
// have a fiftieth of their 15 minutes. One file would take the fiftieth of an hour, if it was
// alone, and delays no other.
func TestAMillionMovesTakeFourHours(t *testing.T) {
	const stored, scale = 20_000, 50
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(stored, time.Hour/scale)
		begun, moved, runs := time.Now(), 0, 0
		for complete := false; !complete && runs < 10; runs++ {
			r := s.run(t, 15*time.Minute/scale)
			moved, complete = moved+r.Moved, r.Complete
		}
		if len(s.ids) != 0 || s.copied != stored || s.left > 0 || moved != stored {
			t.Errorf("%d files were moved and %d copied, %d are left; the large one takes %v more",
				moved, s.copied, len(s.ids), s.left)
		}
		if took := s.finished.Sub(begun); took > 4*time.Hour/scale {
			t.Errorf("%d moves took %v", stored, took)
		} else {
			t.Logf("%d moves took %v, and the sweep %v in %d runs", stored, took, time.Since(begun), runs)
		}
	})
}

func TestAnObjectThatTakesLongLeavesTheRunTimeToNoteWhereItIs(t *testing.T) {
	const key = "D0-1999-12-31/1-0000000000000000000000-alice"
	synctest.Test(t, func(t *testing.T) {
		s, due := newSlow(1, time.Hour), 0
		s.keys[0], s.ids[1], s.huge = key, key, key
		if r := s.run(t, time.Minute); r.Unfinished != 1 || r.Complete {
			t.Errorf("the sweep reported %+v", r)
		}
		for key := range s.written {
			if key.PK == "due" {
				due++
			}
		}
		expect.Equal(t, "items that say when to try it again", due, 1)
	})
}
