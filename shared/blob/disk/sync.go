package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// sync makes the names in a folder durable.
func (s *Store) sync(dir string) error {
	if s.noSync {
		return nil
	}
	return s.syncs.sync(dir)
}

// syncGroup lets one fsync of a folder serve all who wait for it.
type syncGroup struct {
	fsync func(dir string) error

	mu     sync.Mutex
	latest map[string]*round // of each folder that is being synced or about to be
}

// round is one fsync. Who begins a round does its fsync; others may join it
// until then.
type round struct {
	begun bool
	done  chan struct{}
	err   error
}

func newSyncGroup(fsync func(dir string) error) *syncGroup {
	return &syncGroup{fsync: fsync, latest: map[string]*round{}}
}

// sync returns after an fsync that began when sync had been called: one that
// was under way by then may have missed the caller's change.
func (g *syncGroup) sync(dir string) error {
	g.mu.Lock()
	before := g.latest[dir]
	if before != nil && !before.begun {
		g.mu.Unlock()
		<-before.done
		return before.err
	}
	r := &round{done: make(chan struct{})}
	g.latest[dir] = r
	g.mu.Unlock()

	if before != nil {
		<-before.done // meanwhile others join
	}
	g.mu.Lock()
	r.begun = true
	g.mu.Unlock()
	r.err = g.fsync(dir)
	g.mu.Lock()
	if g.latest[dir] == r {
		delete(g.latest, dir)
	}
	g.mu.Unlock()
	close(r.done)
	return r.err
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// maxKnown bounds the memory for owners; those of both areas count.
const maxKnown = 10_000

// knownOwners are folders of owners whose own names are durable.
type knownOwners struct {
	mu   sync.Mutex
	dirs map[string]struct{}
}

func (k *knownOwners) has(dir string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.dirs[dir]
	return ok
}

func (k *knownOwners) add(dir string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dirs == nil || len(k.dirs) >= maxKnown {
		k.dirs = map[string]struct{}{}
	}
	k.dirs[dir] = struct{}{}
}

// makeOwner makes an owner's folder. That the folder exists does not tell
// whether it is durable: another create may have made it just now.
func (s *Store) makeOwner(dir string) error {
	if s.owners.has(dir) {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := s.sync(filepath.Dir(dir)); err != nil {
		return err
	}
	s.owners.add(dir)
	return nil
}
