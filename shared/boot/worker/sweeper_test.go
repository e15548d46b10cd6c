package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
	cloud "ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
)

func runWith(t *testing.T, p *service.Service, with worker.Providers, left time.Duration) files.SweepReport {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), left)
	defer cancel()
	r, err := worker.SweeperHandler(&worker.Worker{Service: p, Providers: with})(ctx, cloud.SweepEvent{})
	expect.NoErr(t, err)
	return r
}

func TestTheScheduledEventSweeps(t *testing.T) {
	t.Parallel()
	fixture := boottest.Load(t, "sweep")
	handler := lambda.NewHandler(worker.SweeperHandler(&worker.Worker{
		Service:   boottest.Service(t, nil),
		Providers: new(boottest.Cloud).Providers(),
	}))
	answer, err := handler.Invoke(t.Context(), fixture.Event)
	expect.NoErr(t, err)
	expect.NoErr(t, fixture.Expect.Check(answer))
}

func TestBytesWithoutARecordAreKeptForEightDays(t *testing.T) {
	t.Parallel()
	for days, orphans := range map[int]int{7: 0, 9: 1} {
		p := boottest.Service(t, map[string]string{"FERRY_KEEP_DAYS": "0", "FERRY_BACKUP_DAYS": "0"})
		if _, err := p.Blobs.Create(
			t.Context(),
			blob.Files,
			"D0-1999-12-31/3-0000000000000000000000-alice",
			strings.NewReader(""),
			0,
		); err != nil {
			t.Fatal(err)
		}
		p.Now = func() time.Time { return time.Now().AddDate(0, 0, days) }
		expect.Equal(
			t,
			fmt.Sprintf("leftovers removed after %d days", days),
			runWith(t, p, new(boottest.Cloud).Providers(), 15*time.Minute).Orphans,
			orphans,
		)
	}
}

func TestASweepStopsBeforeItsTimeIsUp(t *testing.T) {
	t.Parallel()
	again := &again{}
	r, err := again.handle(t, boottest.Service(t, nil), 30*time.Second, cloud.SweepEvent{Failed: 2})
	if err != nil || r.Complete || r.Seen != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if want := (cloud.SweepEvent{Again: 1, Failed: 2}); len(again.asked) != 1 || again.asked[0] != want {
		t.Errorf("asked was %+v, want %+v", again.asked, want)
	}
}

// again is a function that notes how it calls itself.
type again struct {
	boottest.Cloud
	asked []cloud.SweepEvent
	err   error
}

const self = "arn:aws:lambda:us-east-1:123456789012:function:sweep:live"

func (a *again) handle(
	t *testing.T,
	p *service.Service,
	left time.Duration,
	e cloud.SweepEvent,
) (files.SweepReport, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), left)
	defer cancel()
	with := a.Providers()
	with.Invoke = func(_ context.Context, function string, e cloud.SweepEvent) error {
		expect.Equal(t, "the function that is called", function, self)
		a.asked = append(a.asked, e)
		return a.err
	}
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{InvokedFunctionArn: self})
	return worker.SweeperHandler(&worker.Worker{Service: p, Providers: with})(ctx, e)
}

// TestARunThatHasCalledTheNextIsNoError, as Lambda would repeat it twice, each would call
// another one, and soon there would be hundreds at once.
func TestARunThatHasCalledTheNextIsNoError(t *testing.T) {
	t.Parallel()
	p := boottest.Service(t, nil)
	expect.NoErr(
		t,
		p.Table.Write(t.Context(), notify.Notice{Channel: files.Mail}.Op(time.Now().Add(-2*time.Hour), "x")),
	)
	a := again{Cloud: boottest.Cloud{TopicsErr: errors.New("no topic")}}
	if r, err := a.handle(t, p, 30*time.Second, cloud.SweepEvent{}); err != nil || r.Complete || len(a.asked) != 1 {
		t.Errorf("%+v, %v; asked was %v", r, err, a.asked)
	}
	if r, err := a.handle(t, p, 15*time.Minute, a.asked[0]); !errors.Is(err, a.TopicsErr) ||
		!r.Complete ||
		len(a.asked) != 1 {
		t.Errorf("the last run gave %+v, %v; asked was %v", r, err, a.asked)
	}
}

func TestASweepThatCannotGoOnFails(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		*again
		cloud.SweepEvent
		left time.Duration
	}{
		"it cannot be called again": {
			again:      &again{err: errors.New("denied")},
			SweepEvent: cloud.SweepEvent{},
			left:       30 * time.Second,
		},
		"it has run a hundred times": {
			again:      new(again),
			SweepEvent: cloud.SweepEvent{Again: 100},
			left:       30 * time.Second,
		},
		"objects failed in an earlier run": {
			again:      new(again),
			SweepEvent: cloud.SweepEvent{Again: 1, Failed: 2},
			left:       15 * time.Minute,
		},
	} {
		if r, err := k.handle(t, boottest.Service(t, nil), k.left, k.SweepEvent); err == nil ||
			r.Complete != (k.left > time.Minute) {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}

// copies is a store that copies once first has returned nil.
type copies struct {
	blob.Store
	first func(context.Context) error
}

func (s copies) Copy(ctx context.Context, from blob.Area, fromKey string, to blob.Area, toKey string) error {
	if err := s.first(ctx); err != nil {
		return err
	}
	return s.Store.Copy(ctx, from, fromKey, to, toKey)
}

// deleting returns ports where the first of alice's files was deleted, its bytes, and the event
// that asks for them to be moved.
func deleting(t *testing.T) (*service.Service, files.File, cloud.SweepEvent) {
	t.Helper()
	p := boottest.Service(t, nil)
	p.Mover = func(context.Context, *files.Service, string, int64) error { return nil }
	alice, err := p.Users().Get(t.Context(), "alice")
	expect.NoErr(t, err)
	deleted, err := p.Files().Delete(t.Context(), alice, 1)
	expect.NoErr(t, err)
	return service.New(p.Ports, p.Settings), deleted.File, cloud.SweepEvent{Move: &cloud.Moved{Owner: "alice", ID: 1}}
}

func TestAFileThatTakesLongToMoveGoesOnInTheNextRun(t *testing.T) {
	t.Parallel()
	p, deleted, e := deleting(t)
	slow := true
	p.Blobs = copies{p.Blobs, func(ctx context.Context) error {
		if slow {
			<-ctx.Done()
		}
		return ctx.Err()
	}}
	var a again
	if _, err := a.handle(t, p, 30*time.Second+100*time.Millisecond, e); err != nil ||
		len(a.asked) != 1 ||
		a.asked[0].Again != 1 ||
		*a.asked[0].Move != *e.Move {
		t.Fatalf("the first run gave %v, and asked was %+v", err, a.asked)
	}
	slow = false
	if _, err := a.handle(t, p, 15*time.Minute, a.asked[0]); err != nil || len(a.asked) != 1 {
		t.Errorf("the second run gave %v, and asked was %+v", err, a.asked)
	}
	_, err := p.Blobs.Open(t.Context(), blob.Backup, deleted.Blob)
	expect.NoErr(t, err)
}

func TestAMoveThatFailsIsAnErrorAndIsLeftToTheNextSweep(t *testing.T) {
	t.Parallel()
	p, _, e := deleting(t)
	broken := service.New(p.Ports, p.Settings)
	broken.Blobs = copies{p.Blobs, func(context.Context) error { return errors.New("the store is away") }}
	var a again
	if _, err := a.handle(t, broken, 15*time.Minute, e); err == nil || a.asked != nil {
		t.Errorf("the run gave %v, and asked was %v", err, a.asked)
	}
	expect.Equal(
		t,
		"files that the sweep moved",
		runWith(t, p, new(boottest.Cloud).Providers(), 15*time.Minute).Moved,
		1,
	)
}

func TestASweepQueuesOverdueNoticesAgain(t *testing.T) {
	t.Parallel()
	p := boottest.Service(t, nil)
	var providers boottest.Cloud
	op := notify.Notice{Channel: files.SMS}.Op(time.Now().Add(-2*time.Hour), "x")
	expect.NoErr(t, p.Table.Write(t.Context(), op))
	runWith(t, p, providers.Providers(), 15*time.Minute)
	want := []notify.TopicMessage{notify.Pointer(op.Key, "sms")}
	expect.Equal(t, "what was published", providers.Published[notify.NoticesTopic], want)
}

// hurried records the deadline of a publication.
type hurried struct{ until time.Time }

func (h *hurried) Publish(ctx context.Context, _ notify.Topic, messages []notify.TopicMessage) []error {
	h.until, _ = ctx.Deadline()
	return make([]error, len(messages))
}

// TestOverdueNoticesLeaveTimeToSweep: without a sender there can be more than one run
// can handle.
func TestOverdueNoticesLeaveTimeToSweep(t *testing.T) {
	t.Parallel()
	p := boottest.Service(t, nil)
	var h hurried
	expect.NoErr(
		t,
		p.Table.Write(t.Context(), notify.Notice{Channel: files.Mail}.Op(time.Now().Add(-2*time.Hour), "x")),
	)
	half := time.Now().Add(7*time.Minute + 30*time.Second)
	runWith(t, p, worker.Providers{Topics: &h}, 15*time.Minute)
	if late := h.until.Sub(half); h.until.IsZero() || late > time.Minute {
		t.Errorf("notices may take %v more than half of the time", late)
	}
}
