package worker_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/notify"
)

func run(t *testing.T, p *api.Ports, left time.Duration) files.SweepReport {
	t.Helper()
	return runWith(t, p, new(boottest.Cloud).Providers(), left)
}

func runWith(t *testing.T, p *api.Ports, with worker.Providers, left time.Duration) files.SweepReport {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), left)
	defer cancel()
	r, err := worker.SweeperHandler(worker.With(p, with))(ctx)
	check(t, err)
	return r
}

func TestTheScheduledEventSweeps(t *testing.T) {
	t.Parallel()
	fixture := boottest.Load(t, "sweep")
	handler := lambda.NewHandler(worker.SweeperHandler(worker.With(boottest.Ports(t, nil), new(boottest.Cloud).Providers())))
	answer, err := handler.Invoke(t.Context(), fixture.Event)
	check(t, err)
	fixture.Expect.Match(t, answer)
}

func TestAnExpiredFileMovesWithTheDefaultRetention(t *testing.T) {
	t.Parallel()
	p := boottest.Ports(t, nil)
	p.Now = func() time.Time { return time.Now().AddDate(0, 0, 31) }
	if r := run(t, p, 15*time.Minute); r.Moved != 2 || !r.Complete {
		t.Errorf("%+v", r)
	}
	page, err := file.Service(p).List(t.Context(), auth.User{Name: "alice"}, blob.Backup, 0, files.PageSize)
	if err != nil || len(page.Files) != 3 {
		t.Errorf("the backup area has %v, %v", page.Files, err)
	}
}

func TestBytesWithoutARecordAreKeptForEightDays(t *testing.T) {
	t.Parallel()
	for days, orphans := range map[int]int{7: 0, 9: 1} {
		p := boottest.Ports(t, map[string]string{"FERRY_KEEP_DAYS": "0", "FERRY_BACKUP_DAYS": "0"})
		if _, err := p.Blobs.Create(t.Context(), blob.Files, "alice/3-leftover", strings.NewReader(""), 0); err != nil {
			t.Fatal(err)
		}
		p.Now = func() time.Time { return time.Now().AddDate(0, 0, days) }
		if r := run(t, p, 15*time.Minute); r.Orphans != orphans {
			t.Errorf("after %d days %+v", days, r)
		}
	}
}

func TestASweepStopsBeforeItsTimeIsUp(t *testing.T) {
	t.Parallel()
	if r := run(t, boottest.Ports(t, nil), 30*time.Second); r.Complete || r.Seen != 0 {
		t.Errorf("%+v", r)
	}
}

func TestASweepQueuesOverdueNoticesAgain(t *testing.T) {
	t.Parallel()
	p := boottest.Ports(t, nil)
	var cloud boottest.Cloud
	op := notify.Notice{Channel: notify.SMS}.Op(time.Now().Add(-2*time.Hour), "x")
	check(t, p.Table.Write(t.Context(), op))
	runWith(t, p, cloud.Providers(), 15*time.Minute)
	if want := []notify.TopicMessage{notify.Pointer(op.Key, "sms")}; !reflect.DeepEqual(cloud.Published[notify.NoticesTopic], want) {
		t.Errorf("published was %v, want %v", cloud.Published, want)
	}
	cloud.TopicsErr = errors.New("no topic")
	r, err := worker.SweeperHandler(worker.With(p, cloud.Providers()))(t.Context())
	if !errors.Is(err, cloud.TopicsErr) || !r.Complete {
		t.Errorf("without a topic %+v, %v", r, err)
	}
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
	p := boottest.Ports(t, nil)
	var h hurried
	check(t, p.Table.Write(t.Context(), notify.Notice{Channel: notify.Mail}.Op(time.Now().Add(-2*time.Hour), "x")))
	half := time.Now().Add(7*time.Minute + 30*time.Second)
	runWith(t, p, worker.Providers{Topics: &h}, 15*time.Minute)
	if late := h.until.Sub(half); h.until.IsZero() || late > time.Minute {
		t.Errorf("notices may take %v more than half of the time", late)
	}
}
