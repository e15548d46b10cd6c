package notify

import (
	"context"
	"errors"
	"iter"
	"time"

	"ferry/shared/fault"
	"ferry/shared/table"
)

// The errors that say why an operator cannot do something.
var (
	ErrUnknown = errors.New("unknown notice")
	ErrLeased  = errors.New("a sender has the notice; if that sender crashed, try again in 2 minutes")
	ErrSent    = errors.New("the notice was already sent")
	ErrFailed  = errors.New("the notice has already failed")
)

// Cancelled is the last error of a notice that an operator has cancelled.
const Cancelled = "cancelled"

// Waiting yields the notices in the outbox. For an item that cannot be read, it
// yields a Notice with only an ID and a LastError that says why.
func Waiting(ctx context.Context, t table.Table) iter.Seq2[Notice, error] {
	return scan(ctx, t, table.Query{}, shown, partitions(OutboxPrefix)...)
}

// GivenUp yields the notices that were given up in the last 30 days, newest
// first. LastError says why.
func GivenUp(ctx context.Context, t table.Table) iter.Seq2[Notice, error] {
	return scan(ctx, t, table.Query{Descending: true}, shown, failedPartition)
}

// shown returns the notice in an item, for an operator.
func shown(item table.Item) (Notice, error) {
	n, err := decode(item)
	if err != nil {
		n = Notice{ID: item.Key.SK, LastError: err.Error()}
	}
	return n, nil
}

// Find returns a notice as it is now, or ErrUnknown.
func Find(ctx context.Context, t table.Table, id string) (Notice, error) {
	n, _, err := findItems(ctx, t, id)
	return n, err
}

// findItems returns a notice and the three items that may hold it.
func findItems(
	ctx context.Context,
	t table.Table,
	id string,
) (n Notice, items []table.Item, err error) {
	if items, err = lookUp(ctx, t, id); err == nil {
		n, err = latest(items)
	}
	if err == nil && n.ID == "" {
		err = ErrUnknown
	}
	return n, items, err
}

// Retry makes a notice due now, even one that has failed, and gives it another
// day. It returns ErrUnknown, ErrLeased or ErrSent if that is not possible.
func Retry(ctx context.Context, t table.Table, now time.Time, id string) error {
	n, items, err := findItems(ctx, t, id)
	var ops []table.Op
	switch {
	case err != nil:
		return err
	case n.Outcome == Sent:
		return ErrSent
	case n.Outcome == Failed && items[2].Found():
		ops = n.revive(table.Delete(endedKey(id)).If(table.Equal("state", string(Failed))), now)
	case n.Outcome == Failed:
		ops = n.revive(table.Delete(failedKey(id)).If(table.Exists()), now)
	case n.leased(now):
		return ErrLeased
	default:
		ops = []table.Op{table.Update(n.Key()).
			If(n.untouched()...).
			Set("notBefore", now.UnixMilli()).
			Set("retried", now.Unix()).
			Set("sending", false)}
	}
	return operated("retrying", t.Write(ctx, ops...))
}

// revive returns the operations that put a failed notice back into the outbox; failed removes it
// from where it is. Its tries keep counting, as they identify senders' leases.
func (n Notice) revive(failed table.Op, now time.Time) []table.Op {
	n.Outcome = ""
	n.FailedAt = 0
	n.SentAt = 0
	n.Delivered = 0
	n.Provider = ""
	n.LastError = ""
	n.NotBefore = now.UnixMilli()
	n.Retried = now.Unix()
	n.Sending = false
	return []table.Op{failed, table.Put(n.Key(), n).If(table.NotExists())}
}

// Cancel takes a notice out of the outbox: the uploader sees it as failed. It
// returns ErrUnknown, ErrLeased, ErrSent or ErrFailed if that is not possible.
// also adds operations for a notice that fails.
func Cancel(ctx context.Context, t table.Table, now time.Time, id string, also ...OnEnd) error {
	n, err := Find(ctx, t, id)
	switch {
	case err != nil:
		return err
	case n.Outcome == Sent:
		return ErrSent
	case n.Outcome == Failed:
		return ErrFailed
	case n.leased(now):
		return ErrLeased
	}
	return operated("cancelling", t.Write(ctx, n.failed(now, Cancelled).
		end(now, also, n.untouched()...)...))
}

// leased reports whether a sender has the notice now.
func (n Notice) leased(now time.Time) bool { return n.Sending && n.NotBefore > now.UnixMilli() }

// operated wraps the error of an operator's write. A failed condition means that a sender was
// faster.
func operated(what string, err error) error {
	if errors.Is(err, table.ErrCondition) {
		return ErrLeased
	}
	return fault.Wrap(err, what+" a notice")
}
