package links

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
)

// receipt says where to mail a receipt for a file's first download. While the receipt is due,
// there is an item beside the record, and the transaction of the first download removes it. So
// the receipt is sent once, even if several links are used or the file was moved meanwhile.
type receipt struct {
	V int64 `json:"v"`
	files.Contact
}

// followUp is the longest that a receipt or an event may delay an answer, because no later
// download makes up for a lost one. A count may take that long in all.
const followUp = time.Second

func receiptKey(f files.File) table.Key {
	return table.Key{PK: "receipt#" + f.Owner, SK: files.Key(f.Area, f.Owner, f.ID).SK}
}

// receiptDue returns the operation that stores the receipt of a new file as due, if the uploader
// wants one.
func receiptDue(f files.File, to files.Contact) []table.Op {
	if to.To == "" {
		return nil
	}
	return []table.Op{table.Put(receiptKey(f), receipt{table.Format, to})}
}

func (l Link) receiptDue() bool {
	return l.File.Notify && !l.ReceiptDone && l.File.Area == blob.Files
}

// writeFirst writes an operation that counts a download, and queues the receipt. It does
// nothing if the receipt is no longer due, or the link no longer exists.
func (s *Service) writeFirst(
	ctx context.Context,
	l Link,
	counting table.Op,
) (queued bool, err error) {
	var due receipt
	err = s.Table.Get(ctx, receiptKey(l.File), &due)
	if errors.Is(err, table.ErrUnreadable) {
		s.Log.ErrorContext(ctx, "an item of the table cannot be read",
			"key", receiptKey(l.File).String(),
			"error", err)
	}
	if err != nil {
		return false, fault.Wrap(
			err,
			"reading whether a receipt is due",
			table.ErrNotFound,
			table.ErrUnreadable,
		)
	}
	to := ""
	if l.SeenBy(l.File.Uploader() == "", true) {
		to = l.To
	}
	notice, err := s.Outbox.Receipt(ctx, due.Contact, l.File, to)
	if err != nil {
		return false, err
	}
	err = s.Table.Write(ctx, counting, table.Delete(receiptKey(l.File)).
		If(table.Exists()), notice)
	if err == nil {
		s.Queued()
	}
	return err == nil, fault.Wrap(err, "counting the first download", table.ErrCondition)
}

// report records the event of a download. The event is not in one transaction with the count,
// because transactions on one link exclude each other.
func (s *Service) report(ctx context.Context, l Link) error {
	ops, err := s.Outbox.Event(ctx, files.Event{
		What: files.Downloaded,
		File: l.File,
		Link: l.Recipient,
	})
	if len(ops) > 0 {
		return s.atMost(ctx, followUp, func(ctx context.Context) error {
			return fault.Wrap(s.Table.Write(ctx, ops[0].Relax()), "recording a download")
		})
	}
	return fault.Wrap(err, "recording a download")
}

// atMost runs f and waits at most d for it, so that it delays no answer longer. After that f
// continues in the background. If only this process uses the table, atMost waits for f to end.
func (s *Service) atMost(
	ctx context.Context,
	d time.Duration,
	f func(context.Context) error,
) error {
	if s.CountWait == 0 {
		return f(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), followUp)
	done, left := make(chan error), make(chan struct{})
	s.mu.Lock()
	s.late++
	s.mu.Unlock()
	go func() {
		defer cancel()
		err := safely(ctx, f)
		select {
		case done <- err:
		case <-left:
			s.warn(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late--
		s.ended.Broadcast()
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		close(left)
		return nil
	}
}

// awaitAnswers waits for the writes of answers.
func (s *Service) awaitAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.late > 0 {
		s.ended.Wait()
	}
}

// safely turns a panic into an error, as the server does in the handlers that it calls itself.
func safely(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f(ctx)
}

func (s *Service) warn(err error) {
	if err != nil && !errors.Is(err, errCounted) {
		s.Log.Warn("a download was not counted or recorded", "error", err.Error())
	}
}
