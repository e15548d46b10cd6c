package notify_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"ferry/shared/notify"
)

func TestInvalidReplyAddressIsLeftOut(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"demo@example.net": "demo@example.net", "a@example.org\r\nBcc: spy@example.org": "", "": ""} {
		r := begin(t, func(p *machine) notify.Notice { n := p.linkNotice(1); n.ReplyTo = address; return n }, true)
		var got lastMail
		r.sender.Mail = &got
		if sent(r); got.To != r.notice.To || got.ReplyTo != want || got.From != "Ferry <ferry@example.org>" || got.ID != r.notice.ID {
			t.Errorf("%q: %+v", address, got)
		}
	}
}

func TestManySendersSendEachNoticeOnce(t *testing.T) {
	t.Parallel()
	p, f := newMachine(t), &provider{}
	const total = 3 * notify.Batch / 2
	all := make([]notify.Notice, total)
	for i := range all {
		all[i] = p.put(t, p.linkNotice(int64(i+1)))
	}
	var wg sync.WaitGroup
	for worker := range 6 { // each with its own connection, like as many processes
		s := p.senderOn(t, p.open(t), mails{f.take}, nil)
		wg.Go(func() {
			if worker < 2 {
				s.SendDue(t.Context())
				return
			}
			for i := range all {
				n := all[(i*worker+worker)%total]
				if again, err := s.Handle(t.Context(), n.Key()); err != nil || again < 0 || again > notify.Lease {
					t.Errorf("again after %v, %v", again, err)
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(f.taken)
	if len(slices.Compact(f.taken)) != total || f.tries != total || p.waiting(t) != 0 || strings.Contains(p.log.String(), tableFailed) {
		t.Errorf("%d notices were sent by %d mails, %d wait: %s", total, f.tries, p.waiting(t), p.log)
	}
}

func TestRestOfAFullBatchIsDueAtOnce(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	count := map[string]int{} // by shard
	for i := int64(1); len(count) == 0 || slices.Max(slices.Collect(maps.Values(count))) <= notify.Batch; i++ {
		count[p.put(t, p.linkNotice(i)).Key().PK]++
	}
	all := p.waiting(t)
	s := p.sender(t, nil)
	if sent, next := p.pass(t, s); sent != all-1 || !next.Equal(start()) {
		t.Errorf("%d of %d sent, next %v", sent, all, next)
	}
	if sent, next := p.pass(t, s); sent != 1 || !next.IsZero() {
		t.Errorf("%d sent, next %v", sent, next)
	}
}

func TestSenderNeedsAnAddressToSendFrom(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"", "ferry", "ferry@example.org\r\nBcc: x@example.org"} {
		if _, err := notify.NewSender(notify.Config{Mail: mails{}, From: from}); err == nil {
			t.Errorf("%q was accepted", from)
		}
	}
}

func TestNoticeStaysIfTheTableCannotBeRead(t *testing.T) {
	t.Parallel()
	r := begin(t, link, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.sender.Handle(ctx, r.notice.Key()); err == nil {
		t.Error("no error")
	}
	r.check(isQueued("", 0, 0))
}

func TestTextMessageNeedsAnIDATextAndANumber(t *testing.T) {
	t.Parallel()
	const number = "+393331234567"
	for m, ok := range map[notify.TextMessage]bool{
		{ID: "1", To: number, Text: "hi"}:              true,
		{ID: "1", To: "+123456789012345", Text: "hi"}:  true, // the longest
		{ID: "1", To: "3331234567", Text: "hi"}:        false,
		{ID: "1", To: "+39 333 1234567", Text: "hi"}:   false,
		{ID: "1", To: "+1234567890123456", Text: "hi"}: false,
		{ID: "1", To: "+0333123456", Text: "hi"}:       false,
		{ID: "1", To: number}:                          false,
		{To: number, Text: "hi"}:                       false,
	} {
		if err := m.Check(); (err == nil) != ok || !ok && !errors.Is(err, notify.ErrTextRefused) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
