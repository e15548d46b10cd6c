package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
)

// syncer makes commits durable. SQLite alone would make the writer wait for the
// disk at each commit. With a syncer the writer continues, and one sync of the log
// serves all commits made before it began. On a disk that takes 8 ms to sync,
// 16 clients store 810 small files a second, instead of 386 if the writer waits.
// SQLite still syncs where its own integrity depends on it (synchronous = NORMAL):
// when it restarts the log, and around a checkpoint.
type syncer struct {
	log       *os.File // SQLite's log, opened a second time; it holds no lock
	flush     func() error
	committed chan []*request
	ended     chan struct{}
	failed    *atomic.Pointer[error] // the writer's
}

func newSyncer(path string, failed *atomic.Pointer[error]) (*syncer, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(real+"-wal", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s := &syncer{
		log:       log,
		flush:     func() error { return syncData(log) },
		failed:    failed,
		committed: make(chan []*request, maxQueue),
		ended:     make(chan struct{}),
	}
	go s.run()
	return s, nil
}

// run answers committed requests when they are durable.
func (s *syncer) run() {
	defer close(s.ended)
	for served := range s.committed {
		for len(s.committed) > 0 {
			served = append(served, <-s.committed...)
		}
		err := s.sync()
		for _, r := range served {
			r.done <- err
		}
	}
}

// sync fails for good after the first failure: the system may have dropped what it
// could not write then, and a later success would not show that.
func (s *syncer) sync() error {
	if err := s.error(); err != nil {
		return err
	}
	err := s.flush()
	if err != nil {
		// Not table.ErrFull, which says that nothing happened: this was written, and may stay.
		err = fmt.Errorf(
			"a write to the disk failed; nothing more is written until a restart: %w",
			err,
		)
		s.failed.Store(&err)
	}
	return err
}

// error returns the error of an earlier sync, after which nothing may be written.
func (s *syncer) error() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// stop answers all waiting requests.
func (s *syncer) stop() error {
	if s == nil {
		return nil
	}
	close(s.committed)
	<-s.ended
	return errors.Join(s.error(), s.log.Close())
}
