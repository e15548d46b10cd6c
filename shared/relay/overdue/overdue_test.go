package overdue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"ferry/shared/boot/boottest"
	"ferry/shared/notices"
	"ferry/shared/relay"
	"ferry/shared/relay/overdue"
)

type topics struct {
	sent []relay.Message
	err  error
}

func (s *topics) Publish(_ context.Context, to relay.Topic, messages []relay.Message) []error {
	if to != relay.Notices {
		return []error{fmt.Errorf("published to %s", to)}
	}
	s.sent = append(s.sent, messages...)
	return []error{s.err}
}

func TestWhatIsOverdueIsPointedAtAgain(t *testing.T) {
	t.Parallel()
	p := boottest.Ports(t, nil)
	now := time.Now()
	var want []relay.Message
	for i := range 25 {
		n := notices.Notice{Kind: notices.Link, Channel: notices.Mail}
		if i == 7 {
			n.Channel = notices.SMS
		}
		at := now.Add(-2 * time.Hour)
		if i >= 23 { // these are not late yet
			at = now.Add(-59 * time.Minute)
		}
		op := n.Op(at, fmt.Sprint(i))
		if err := p.Table.Write(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		if i < 23 {
			want = append(want, relay.Pointer(op.Key, string(n.Channel)))
		}
	}
	var s topics
	count, err := overdue.Remind(t.Context(), p.Table, &s, now)
	if err != nil || count != 23 || len(s.sent) != 23 {
		t.Fatalf("pointed at %d by %d messages, %v", count, len(s.sent), err)
	}
	for _, m := range want {
		if !slices.Contains(s.sent, m) {
			t.Errorf("nothing points at %s", m.Body)
		}
	}
	s.err = errors.New("no topic")
	if _, err := overdue.Remind(t.Context(), p.Table, &s, now); !errors.Is(err, s.err) {
		t.Errorf("the error is %v", err)
	}
}
