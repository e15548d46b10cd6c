package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ferry/shared/notify"
	"ferry/shared/table"
)

// counted is a table that records its calls: each costs money in the cloud.
type counted struct {
	table.Table
	calls []string
}

func (c *counted) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	c.calls = append(c.calls, fmt.Sprint("get ", len(keys)))
	return c.Table.GetMany(ctx, keys...)
}

func (c *counted) Get(ctx context.Context, key table.Key, into any) error {
	c.calls = append(c.calls, "get 1")
	return c.Table.Get(ctx, key, into)
}

func (c *counted) Query(ctx context.Context, q table.Query) (table.Page, error) {
	c.calls = append(c.calls, "query")
	return c.Table.Query(ctx, q)
}

func (c *counted) Write(ctx context.Context, ops ...table.Op) error {
	c.calls = append(c.calls, fmt.Sprint("write ", len(ops)))
	return c.Table.Write(ctx, ops...)
}

// TestEachNoticeTakesFewCallsToTheTable pins the calls; the table's README says what they cost.
func TestEachNoticeTakesFewCallsToTheTable(t *testing.T) {
	t.Parallel()
	link := func(p *machine) notify.Notice { return p.linkNotice(1) }
	text, pin := (*machine).textNotice, (*machine).pinNotice
	handled := func(t *testing.T, s *notify.Sender, n notify.Notice) { handle(t, s, n) }
	reported := func(kind notify.FeedbackKind) func(*testing.T, *notify.Sender, notify.Notice) {
		return func(t *testing.T, s *notify.Sender, n notify.Notice) {
			must(t, notify.Record(t.Context(), s.Table, start(), notify.Feedback{ID: n.ID, Kind: kind}))
		}
	}
	tests := []struct {
		name   string
		notice func(*machine) notify.Notice
		fail   error
		sent   bool // before
		do     func(*testing.T, *notify.Sender, notify.Notice)
		want   string
	}{
		{"a mail that is sent", link, nil, false, handled, "get 1, write 1, get 2, write 2"},
		{"a text message that is sent", text, nil, false, handled, "get 1, write 1, get 1, write 2"},
		{"a PIN that is sent", pin, nil, false, handled, "get 1, write 1, get 1, write 1"},
		{"a mail that fails for now", link, errors.New("down"), false, handled, "get 1, write 1, get 2, write 1"},
		{"a mail that fails for good", link, notify.ErrPermanent, false, handled, "get 1, write 1, get 2, write 2"},
		{"a message about a notice that was sent", link, nil, true, handled, "get 1"},
		{"a delivery", link, nil, true, reported(notify.Delivered), "get 3, write 1"},
		{"a bounce", link, nil, true, reported(notify.Bounced), "get 3, write 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			n := p.put(t, tt.notice(p))
			if tt.sent {
				p.pass(t, p.sender(t, nil))
			}
			c := &counted{Table: p.table}
			s := p.senderOn(t, c, &flaky{fail: tt.fail}, p.inbox.SMS())
			tt.do(t, s, n)
			if got := strings.Join(c.calls, ", "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
