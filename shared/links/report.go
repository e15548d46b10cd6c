package links

import (
	"context"
	"errors"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
)

// receipt says where to mail a receipt for a file's first download. While it is due it is an
// item beside the record, and the transaction of the first download removes it. So it is sent
// once, even if several links are used or the file was moved meanwhile.
type receipt struct {
	V int64 `json:"v"`
	files.Contact
}

const formatVersion = 1

// followUp is the longest that a receipt or an event may delay an answer. No later download
// makes up for a lost one.
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
	return []table.Op{table.Put(receiptKey(f), receipt{formatVersion, to})}
}

func (l Link) receiptDue() bool { return l.File.Notify && !l.ReceiptDone && l.File.Area == blob.Files }

// writeFirst writes an operation that counts a download, and queues the receipt. It does
// nothing if the receipt is no longer due, or the link no longer exists.
func (s *Service) writeFirst(ctx context.Context, l Link, counting table.Op) (queued bool, err error) {
	var due receipt
	err = s.Table.Get(ctx, receiptKey(l.File), &due)
	if errors.Is(err, table.ErrUnreadable) {
		s.Log.ErrorContext(ctx, "an item of the table cannot be read", "key", receiptKey(l.File).String(), "error", err)
	}
	if err != nil {
		return false, fault.Wrap(err, "reading whether a receipt is due", table.ErrNotFound, table.ErrUnreadable)
	}
	notice, err := s.Outbox.Receipt(ctx, due.Contact, l.File, l.To)
	if err != nil {
		return false, err
	}
	err = s.Table.Write(ctx, counting, table.Delete(receiptKey(l.File)).If(table.Exists()), notice)
	if err == nil {
		s.Queued()
	}
	return err == nil, fault.Wrap(err, "counting the first download", table.ErrCondition)
}

// report records the event of a download. That is not in one transaction with the count, as
// transactions on one link exclude each other.
func (s *Service) report(ctx context.Context, l Link) error {
	ops, err := s.Outbox.Event(ctx, files.Event{What: files.Downloaded, File: l.File, Link: l.Recipient})
	if len(ops) > 0 {
		err = s.atMost(ctx, followUp, func(ctx context.Context) error { return s.Table.Write(ctx, ops[0].Relax()) })
	}
	return fault.Wrap(err, "recording a download")
}

// atMost runs f, and waits for it at most for d, so that it delays no answer longer; f then goes
// on by itself. A table that only this process uses is waited for.
func (s *Service) atMost(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	if s.CountWait == 0 {
		return f(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	done := make(chan error, 1)
	s.late.Go(func() {
		defer cancel()
		done <- f(ctx)
	})
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		s.late.Go(func() { s.warn(<-done) })
		return nil
	}
}

func (s *Service) warn(err error) {
	if err != nil && !errors.Is(err, errCounted) {
		s.Log.Warn("the use of a link was not counted", "error", err.Error())
	}
}
