package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ferry/shared/table"

	"ferry/shared/notify/mail"
)

// ErrUnsettled is returned for feedback on a notice whose sender has not yet
// written down that it was sent. It passes: the same feedback is to be
// recorded a little later.
var ErrUnsettled = errors.New("the notice is still in the outbox")

// FeedbackKind is what a provider tells of a message after it has taken it.
type FeedbackKind string

// The kinds.
const (
	Delivered   FeedbackKind = "delivered"
	Bounced     FeedbackKind = "bounced"    // for good: the address takes no more mail from here
	Complained  FeedbackKind = "complained" // the recipient calls it spam: the same
	Undelivered FeedbackKind = "failed"     // this message alone
)

// Feedback is what a provider tells of one notice's message.
type Feedback struct {
	ID     string // the notice's
	Kind   FeedbackKind
	Detail string // what the provider says of a failure
	// To is the address that the provider names, for a notice of which
	// nothing is known any more. It may be empty.
	To string
}

// Record notes what a provider tells. It may be told any number of times in
// any order: what has failed stays failed. Of a notice that is not known any
// more an address is suppressed all the same. also is for the operations that
// belong to a notice that has failed.
func Record(ctx context.Context, t table.Table, now time.Time, f Feedback, also ...Settled) error {
	items, err := lookUp(ctx, t, f.ID)
	if err != nil {
		return err
	}
	if items[0].Found() && !items[2].Found() {
		return ErrUnsettled
	}
	n, err := latest(items[1:])
	if err != nil || n.Outcome == Failed {
		return err
	}
	err = t.Write(ctx, append(f.suppress(n.To, now), f.apply(n, now, also)...)...)
	if err != nil && !errors.Is(err, table.ErrCondition) {
		return fmt.Errorf("recording a provider's feedback: %w", err)
	}
	return nil
}

// apply returns the operations on a notice that was sent. Their condition
// fails if other feedback is recorded at the same moment: that of a failure
// tells no less.
func (f Feedback) apply(n Notice, now time.Time, also []Settled) []table.Op {
	if n.Outcome != Sent || f.Kind == Delivered && n.Delivered != 0 {
		return nil
	}
	op := table.Update(settledKey(n.ID)).If(table.Equal("state", string(Sent)))
	if f.Kind == Delivered {
		return []table.Op{op.Set("delivered", now.UnixMilli())}
	}
	n.Outcome, n.FailedAt, n.LastError = Failed, now.UnixMilli(), f.reason()
	ops := []table.Op{op.Set("state", string(Failed)).Set("failedAt", n.FailedAt).Set("lastError", n.LastError)}
	for _, settled := range also {
		ops = append(ops, settled.ops(n)...)
	}
	return ops
}

// suppress returns the operation that keeps later mail from an address which
// refuses it; to is the notice's, if it is known.
func (f Feedback) suppress(to string, now time.Time) []table.Op {
	reasons := map[FeedbackKind]SuppressReason{Bounced: AddressBounced, Complained: AddressComplained}
	to = cmp.Or(to, f.To)
	if reasons[f.Kind] == "" || !mail.Valid(to) {
		return nil
	}
	return []table.Op{Suppress(to, reasons[f.Kind], f.detail(), now)}
}

// reason is the last error of a notice that failed so.
func (f Feedback) reason() string {
	what := map[FeedbackKind]string{Bounced: "bounced", Complained: "complained", Undelivered: "not delivered"}[f.Kind]
	if detail := f.detail(); detail != "" {
		what += ": " + detail
	}
	return what
}

func (f Feedback) detail() string { return brief(errors.New(scrubText(f.Detail))) }
