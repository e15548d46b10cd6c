package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/notify"
)

const (
	// grace is as long as an upload session can be open: S3 counts the age of an
	// object from the start of its upload.
	grace = blob.PartsLife
	// sweeperReserve is how much of the function's time is left when a sweep
	// stops, to be continued by the next.
	sweeperReserve = 60 * time.Second
	// atOnce is how many objects a sweep works on at once. It waits for the stores most
	// of the time.
	atOnce = 50
)

// SweeperHandler returns a function that sweeps once and logs what it did. It sweeps
// even if there are errors with notices, or very many of them.
func SweeperHandler(w *Worker) func(context.Context) (files.SweepReport, error) {
	return func(ctx context.Context) (files.SweepReport, error) {
		p := w.Function.Ports
		reminded, late := remind(ctx, p, w.Topics)
		sweeper := files.Sweeper{
			Service: file.Service(p), Log: p.Log, Grace: grace, Reserve: sweeperReserve, AtOnce: atOnce,
		}
		r, err := sweeper.Run(ctx)
		if err == nil && r.Failed > 0 {
			err = fmt.Errorf("%d objects could not be swept", r.Failed)
		}
		err = errors.Join(late, err)
		p.Log.Info("swept", "seen", r.Seen, "moved", r.Moved, "purged", r.Purged, "orphans", r.Orphans,
			"failed", r.Failed, "old", r.Old, "complete", r.Complete, "overdue", reminded.Pointed, "ended", reminded.Ended)
		return r, err
	}
}

// remind handles overdue notices, in at most half of the time.
func remind(ctx context.Context, p *api.Ports, topics notify.Topics) (notify.RemindReport, error) {
	if until, ok := ctx.Deadline(); ok {
		half, cancel := context.WithTimeout(ctx, time.Until(until)/2)
		defer cancel()
		ctx = half
	}
	return notify.Remind(ctx, p.Table, topics, p.Now(), file.Outbox(p).LinkEnded)
}
