package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"ferry/shared/blob"
	"ferry/shared/boot/lambda"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
)

const (
	// grace is as long as an upload session can be open: S3 counts the age of an
	// object from the start of its upload.
	grace = blob.PartsLife
	// sweeperReserve is how much of the function's time is left when a sweep
	// stops, to be continued by the next.
	sweeperReserve = 60 * time.Second
	// moveReserve is how much of it is left when a move stops, to be continued by the next
	// run: enough to ask for that run.
	moveReserve = 30 * time.Second
	// maxRuns bounds the runs in a row: about a day of them.
	maxRuns = 100
)

// SweeperHandler returns a function that sweeps once and logs what it did, or moves the
// bytes of one file. If time runs out, it continues in another invocation of
// itself. Errors with notices, or very many notices, do not keep it from sweeping.
func SweeperHandler(w *Worker) func(context.Context, lambda.SweepEvent) (files.SweepReport, error) {
	return func(ctx context.Context, e lambda.SweepEvent) (files.SweepReport, error) {
		if e.Move != nil {
			return files.SweepReport{}, w.move(ctx, e)
		}
		p := w.Service
		reminded, late := remind(ctx, p, w.Topics)
		sweeper := files.Sweeper{
			Service: p.Files(),
			Grace:   grace,
			Reserve: sweeperReserve,
			AtOnce:  p.Movers,
		}
		r, err := sweeper.Run(ctx)
		e.Failed += r.Failed
		switch {
		case err == nil && !r.Complete:
			if late != nil { // not an error of this run: Lambda would retry it beside its continuation
				p.Log.Error("overdue notices are left to the next run", "error", late.Error())
			}
			err = w.again(ctx, e)
		case err == nil && e.Failed > 0:
			err = errors.Join(late, fmt.Errorf("objects that could not be swept: %d", e.Failed))
		default:
			err = errors.Join(late, err)
		}
		p.Log.Info("swept",
			"seen", r.Seen,
			"moved", r.Moved,
			"purged", r.Purged,
			"orphans", r.Orphans,
			"kept", r.Kept,
			"failed", r.Failed, "unfinished", r.Unfinished, "complete", r.Complete,
			"overdue", reminded.Pointed, "ended", reminded.Ended)
		return r, err
	}
}

// move moves the bytes of one file, as long as there is time.
func (w *Worker) move(ctx context.Context, e lambda.SweepEvent) error {
	inTime := ctx
	if until, ok := ctx.Deadline(); ok {
		earlier, cancel := context.WithDeadline(ctx, until.Add(-moveReserve))
		defer cancel()
		inTime = earlier
	}
	err := w.Files().MoveBytes(inTime, e.Move.Owner, e.Move.ID)
	if err != nil && inTime.Err() != nil {
		w.Log.Warn("a file takes long to move; the move continues in the next run",
			"owner", e.Move.Owner, "id", e.Move.ID, "error", err.Error())
		return w.again(ctx, e)
	}
	return err
}

// again invokes the function once more, to continue.
func (w *Worker) again(ctx context.Context, e lambda.SweepEvent) error {
	if e.Again++; e.Again > maxRuns {
		return fmt.Errorf("not finished after %d runs", e.Again)
	}
	self, _ := lambdacontext.FromContext(ctx)
	if self == nil || w.Invoke == nil {
		return errors.New("not finished, and this function cannot be called again")
	}
	return w.Invoke(ctx, self.InvokedFunctionArn, e)
}

// remind handles overdue notices, in at most half of the time.
func remind(
	ctx context.Context,
	p *service.Service,
	topics notify.Topics,
) (notify.RemindReport, error) {
	if until, ok := ctx.Deadline(); ok {
		half, cancel := context.WithTimeout(ctx, time.Until(until)/2)
		defer cancel()
		ctx = half
	}
	return notify.Remind(ctx, p.Table, topics, p.Now(), p.Outbox().LinkEnded)
}
