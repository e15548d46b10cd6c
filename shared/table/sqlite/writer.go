package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"ferry/shared/table"
)

const (
	maxQueue      = 1024    // requests that wait; further callers block
	maxBatch      = 256     // requests in one commit
	maxBatchBytes = 8 << 20 // after which a commit takes no more requests

	// logPages is how long the log grows, in pages of 4 KiB, before SQLite makes a checkpoint. A
	// page that many commits changed is copied to the file once.
	logPages = 4000
	pageSize = 4096
)

// request is a write on its way to the writer.
type request struct {
	ctx     context.Context
	do      func(*transaction) error // may run again if it is rolled back
	relaxed bool
	reading *reading // or nil
	size    int      // bytes
	after   []byte   // the first item as it is afterwards
	done    chan error
}

// reading is a page to read after a request's write.
type reading struct {
	table.Query
	page table.Page
	err  error
}

// newRequest returns a relaxed request that reads no page.
func newRequest(ctx context.Context, size int, do func(*transaction) error) *request {
	return &request{ctx: ctx, do: do, relaxed: true, size: size, done: make(chan error, 1)}
}

// writer owns the one connection that writes.
type writer struct {
	conn   *connection
	tx     *transaction
	syncer *syncer // nil if writes do not wait for the disk
	failed atomic.Pointer[error]

	queue   chan *request
	drained chan struct{}
	mu      sync.RWMutex // guards closed, and queue against sending after its close
	closed  bool
}

func openWriter(path string, o Options) (*writer, error) {
	conn, err := connect(path, o.Busy, "mode=rw")
	if err != nil {
		return nil, err
	}
	w := &writer{conn: conn, queue: make(chan *request, maxQueue), drained: make(chan struct{})}
	if err = w.setSync(o); err == nil {
		err = prepareFile(conn, o.Busy)
	}
	if err == nil {
		w.tx, err = newTransaction(conn)
	}
	if err == nil && !o.NoSync {
		w.syncer, err = newSyncer(path, &w.failed)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// setSync lets SQLite keep the file intact whatever happens, but leaves making
// commits durable to the syncer.
func (w *writer) setSync(o Options) error {
	mode := "PRAGMA synchronous = NORMAL"
	if o.NoSync {
		mode = "PRAGMA synchronous = OFF"
	}
	pages := int64(logPages)
	if o.Log > 0 {
		pages = min(max(1, o.Log/pageSize), logPages)
	}
	for _, pragma := range []string{mode, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", pages)} {
		if err := w.conn.run(pragma); err != nil {
			return fmt.Errorf("setting %s: %w", pragma, translate(err))
		}
	}
	return nil
}

// submit enqueues a request and waits for its outcome, or for the end of its
// context.
func (w *writer) submit(r *request) error {
	if err := w.enqueue(r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

func (w *writer) enqueue(r *request) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if w.closed {
		return ErrClosed
	}
	select {
	case w.queue <- r:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// run commits the queued requests, until stop was called and all are answered.
func (w *writer) run() {
	defer close(w.drained)
	for r := range w.queue {
		// Let others queue their requests first: a commit of three requests
		// costs little more than a commit of one.
		runtime.Gosched()
		w.commitAll(w.batch(r))
	}
}

// batch adds the waiting requests to the first.
func (w *writer) batch(first *request) []*request {
	batch, size := []*request{first}, first.size
	for len(batch) < maxBatch && size < maxBatchBytes {
		select {
		case r, ok := <-w.queue:
			if !ok {
				return batch
			}
			batch, size = append(batch, r), size+r.size
		default:
			return batch
		}
	}
	return batch
}

// commitAll answers every request of a batch. Conditions are checked before a
// request writes anything, so a refused request has nothing to undo. If a
// statement or the commit fails, the transaction is undone and each request gets
// its own, so that none fails because of another.
func (w *writer) commitAll(batch []*request) {
	answers := make([]error, len(batch))
	err := w.commit(batch, answers)
	switch {
	case err == nil:
	case len(batch) == 1 || errors.Is(err, table.ErrBusy) || w.failed.Load() != nil:
		answers = slices.Repeat([]error{err}, len(batch))
	default:
		for one := range slices.Chunk(batch, 1) {
			w.commitAll(one)
		}
		return
	}
	var durable []*request
	for i, r := range batch {
		if answers[i] == nil && !r.relaxed && w.syncer != nil {
			durable = append(durable, r)
		} else {
			r.done <- answers[i]
		}
	}
	if len(durable) > 0 {
		w.syncer.committed <- durable
	}
}

// commit runs the requests in one transaction. An error means that nothing
// happened; refusals are in answers.
func (w *writer) commit(batch []*request, answers []error) error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	if err := w.tx.begin.exec(); err != nil {
		return fmt.Errorf("beginning a transaction: %w", translate(err))
	}
	for i, r := range batch {
		answers[i] = r.ctx.Err()
		if answers[i] != nil {
			continue
		}
		answers[i] = r.do(w.tx)
		if _, failed := errors.AsType[*statementError](answers[i]); failed {
			w.tx.rollback()
			return translate(answers[i])
		}
	}
	err := w.tx.flush()
	if err == nil {
		w.tx.readPages(batch, answers)
		err = w.tx.commit.exec()
	}
	if err != nil {
		w.tx.rollback()
		return fmt.Errorf("committing: %w", translate(err))
	}
	for i, r := range batch {
		if answers[i] == nil && r.reading != nil && r.reading.err != nil {
			answers[i] = fmt.Errorf("%w: %w", table.ErrUnread, r.reading.err)
		}
	}
	return nil
}

// stop answers the queued requests and ends run. It may be called repeatedly.
func (w *writer) stop() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.mu.Unlock()
	<-w.drained
}

func (w *writer) close() error { return errors.Join(w.syncer.stop(), w.conn.Close()) }
