package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// syncer makes commits durable. SQLite itself would have the writer wait for
// the disk at each commit; here the writer goes on, and one sync of the log
// serves all commits that were made before it began. SQLite still syncs where
// its own integrity depends on it (synchronous = NORMAL): when the log begins
// anew, and around a checkpoint.
type syncer struct {
	log   *os.File // SQLite's log, on a descriptor of our own; it holds no lock
	flush func() error

	mu      sync.Mutex
	waiting []*request
	wake    chan struct{} // has room for one
	ended   chan struct{}
	failed  atomic.Pointer[error]
}

func newSyncer(path string) (*syncer, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(real+"-wal", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s := &syncer{log: log, flush: func() error { return syncData(log) }, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go s.run()
	return s, nil
}

// add has requests, which are committed, answered when they are durable.
func (s *syncer) add(committed []*request) {
	if len(committed) == 0 {
		return
	}
	s.mu.Lock()
	s.waiting = append(s.waiting, committed...)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // a sync that has not begun yet will serve these too
	}
}

func (s *syncer) run() {
	defer close(s.ended)
	for range s.wake {
		s.mu.Lock()
		served := s.waiting
		s.waiting = nil
		s.mu.Unlock()
		err := s.sync()
		for _, r := range served {
			r.done <- err
		}
	}
}

// sync fails for good after the first failure: what the system could not write
// then it may have dropped, and a later success would say nothing of that.
func (s *syncer) sync() error {
	if err := s.error(); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		err = fmt.Errorf("the disk failed to keep what was written; writing stops until a restart: %w", translate(err))
		s.failed.Store(&err)
		return err
	}
	return nil
}

// error is that of an earlier sync, after which nothing may be written.
func (s *syncer) error() error {
	if s == nil {
		return nil
	}
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// stop answers all that wait.
func (s *syncer) stop() error {
	if s == nil {
		return nil
	}
	close(s.wake)
	<-s.ended
	return errors.Join(s.error(), s.log.Close())
}
