package local

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/files"
)

// moveTime bounds one try to move the bytes of a file. The next try resumes where it stopped.
const moveTime, moveTries = 10 * time.Minute, 100

// movers move the bytes of files in the background.
type movers struct {
	log    *slog.Logger
	mu     sync.Mutex      // held to begin a move, and to end all moves
	moving errgroup.Group  // of as many as there are movers
	ending context.Context // done when the movers must stop
	stop   func()
}

func newMovers(n int, log *slog.Logger) *movers {
	m := &movers{log: log}
	m.moving.SetLimit(n)
	m.ending, m.stop = context.WithCancel(context.Background())
	return m
}

// move is a files.Config's Mover.
func (m *movers) move(_ context.Context, s *files.Service, owner string, id int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending.Err() != nil {
		return errors.New("the service is shutting down")
	}
	begun := m.moving.TryGo(func() error {
		var err error
		for try, late := 0, true; try < moveTries && late; try++ {
			ctx, cancel := context.WithTimeout(m.ending, moveTime)
			err = s.MoveBytes(ctx, owner, id)
			late = err != nil && ctx.Err() != nil && m.ending.Err() == nil
			cancel()
		}
		if err != nil {
			m.log.Error("the bytes of a file could not be moved",
				"owner", owner, "id", id, "error", err.Error())
		}
		return nil
	})
	if !begun {
		return errors.New("all movers are busy")
	}
	return nil
}

func (m *movers) end() {
	m.mu.Lock()
	m.stop()
	m.mu.Unlock()
	_ = m.moving.Wait() // what fails is logged
}
