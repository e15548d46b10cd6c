package notify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/boottest"
	"ferry/shared/notify"
	"ferry/shared/table"
)

type reminded struct {
	mu   sync.Mutex
	sent []notify.TopicMessage
	err  error
}

func (s *reminded) Publish(_ context.Context, to notify.Topic, messages []notify.TopicMessage) []error {
	if to != notify.NoticesTopic {
		return []error{fmt.Errorf("published to %s", to)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, messages...)
	return []error{s.err}
}

func TestSendersArePointedAtOverdueNoticesAgain(t *testing.T) {
	t.Parallel()
	p := boottest.Ports(t, nil)
	now := time.Now()
	var want []notify.TopicMessage
	for i := range 25 {
		n := notify.Notice{Kind: notify.Link, Channel: notify.Mail}
		if i == 7 {
			n.Channel = notify.SMS
		}
		at := now.Add(-2 * time.Hour)
		if i >= 23 { // these are not late yet
			at = now.Add(-59 * time.Minute)
		}
		op := n.Op(at, fmt.Sprint(i))
		must(t, p.Table.Write(t.Context(), op))
		if i < 23 {
			want = append(want, notify.Pointer(op.Key, string(n.Channel)))
		}
	}
	var s reminded
	r, err := notify.Remind(t.Context(), p.Table, &s, now)
	if err != nil || r != (notify.RemindReport{Pointed: 23}) || len(s.sent) != 23 {
		t.Fatalf("%+v by %d messages, %v", r, len(s.sent), err)
	}
	for _, m := range want {
		if !slices.Contains(s.sent, m) {
			t.Errorf("nothing points at %s", m.Body)
		}
	}
	s.err = errors.New("no topic")
	if _, err := notify.Remind(t.Context(), p.Table, &s, now); !errors.Is(err, s.err) {
		t.Errorf("the error is %v", err)
	}
}

func TestNoticeThatIsTooLateIsEnded(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Now()
	tests := []struct {
		name         string
		kind         notify.Kind
		made, lasts  time.Duration // how long ago; how long it lasts from then on, 0 is for ever
		claimed      bool          // by a sender, after it was read
		points, ends int
		says         string // the notice's last error
	}{
		{"a link that works", notify.Link, 2 * time.Hour, day, false, 1, 0, ""},
		{"a link that has expired", notify.Link, 2 * day, day, false, 0, 1, "the notice is obsolete: it has expired"},
		{"a receipt that has expired", notify.Receipt, 2 * day, day, false, 0, 1, "the notice is obsolete: it has expired"},
		{"a PIN that has expired", notify.PIN, 2 * day, time.Hour, false, 0, 1, ""},
		{"a link that never expires, after weeks", notify.Link, 89 * day, 0, false, 1, 0, ""},
		{"a link that never expires, after months", notify.Link, 91 * day, 0, false, 0, 1, "the notice is obsolete: it has waited too long"},
		{"an expired link that a sender has just claimed", notify.Link, 2 * day, day, true, 0, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := boottest.Ports(t, nil)
			n := notify.Notice{Kind: tt.kind, Channel: notify.Mail, To: "ann@example.com"}
			if tt.lasts != 0 {
				n.Expires = now.Add(tt.lasts - tt.made).Unix()
			}
			op := n.Op(now.Add(-tt.made), "x")
			must(t, p.Table.Write(t.Context(), op))
			tab := p.Table
			if tt.claimed {
				tab = &claiming{Table: tab, key: op.Key}
			}
			var s reminded
			var failed []notify.State
			also := func(_ notify.Notice, s notify.State) []table.Op { failed = append(failed, s); return nil }
			r, err := notify.Remind(t.Context(), tab, &s, now, also)
			if err != nil || r.Pointed != tt.points || r.Ended != tt.ends || len(s.sent) != tt.points {
				t.Errorf("%+v by %d messages, %v", r, len(s.sent), err)
			}
			var there notify.Notice
			if err := p.Table.Get(t.Context(), op.Key, &there); (err == nil) != (tt.points == 1 || tt.claimed) {
				t.Errorf("in the outbox: %v", err)
			}
			states, err := notify.States(t.Context(), p.Table, []string{op.Key.SK})
			if err != nil || tt.says != "" && (len(states) != 1 || states[0].State() != notify.Failed || states[0].LastError != tt.says) {
				t.Errorf("its sender sees %+v, %v", states, err)
			}
			if (len(failed) == 1 && failed[0] == notify.Failed) != (tt.ends == 1 && tt.kind == notify.Link) {
				t.Errorf("the settled states are %v", failed)
			}
			if r, err := notify.Remind(t.Context(), p.Table, &s, now); err != nil || r.Ended != 0 {
				t.Errorf("once more: %+v, %v", r, err)
			}
		})
	}
}

// claiming is a table where a sender claims the notice as soon as it is read.
type claiming struct {
	table.Table
	key table.Key
}

func (c *claiming) Query(ctx context.Context, q table.Query) (table.Page, error) {
	page, err := c.Table.Query(ctx, q)
	if len(page.Items) > 0 {
		err = errors.Join(err, c.Write(ctx, table.Update(c.key).Add("tries", 1).Set("notBefore", time.Now().Add(time.Minute).UnixMilli())))
	}
	return page, err
}

func TestOneRunEndsABoundedNumberOfNotices(t *testing.T) {
	t.Parallel()
	p := boottest.Ports(t, nil)
	now := time.Now()
	n := notify.Notice{Kind: notify.PIN, Channel: notify.Mail, Expires: now.Add(-time.Hour).Unix()}
	var ops []table.Op
	for i := range notify.MaxEnded + 7 {
		ops = append(ops, n.Op(now.Add(-2*time.Hour), fmt.Sprint(i)))
	}
	for some := range slices.Chunk(ops, table.MaxOps) {
		must(t, p.Table.Write(t.Context(), some...))
	}
	var s reminded
	for _, want := range []int{notify.MaxEnded, 7, 0} {
		if r, err := notify.Remind(t.Context(), p.Table, &s, now); err != nil || r.Ended != want || len(s.sent) != 0 {
			t.Errorf("%+v, want %d, %v", r, want, err)
		}
	}
}
