package notify_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/boottest"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/notify/mail/smtp"
	"ferry/shared/table"
)

// smtpSender returns a Sender through the server at an address.
func smtpSender(t *testing.T, address string) *smtp.Sender {
	t.Helper()
	m, err := smtp.New("smtp://" + address)
	must(t, err)
	return m
}

// freeAddress returns a loopback address where nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

func TestNoticeIsSentOnceAndLeavesTheOutbox(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	srv := boottest.StartSMTP(t, boottest.SMTPOptions{})
	n := p.put(t, p.linkNotice(1))
	s := p.sender(t, smtpSender(t, srv.Address))
	if sent, next := p.pass(t, s); sent != 1 || !next.IsZero() {
		t.Errorf("%d sent, next %v: %s", sent, next, p.log)
	}
	if sent, _ := p.pass(t, s); sent != 0 || p.waiting(t) != 0 || len(p.failed(t)) != 0 {
		t.Errorf("%d sent again, %d waiting", sent, p.waiting(t))
	}
	got := srv.Talk().Messages
	if len(got) != 1 || !strings.Contains(got[0], "Message-ID: <"+n.ID+"@example.org>\n") || !strings.Contains(got[0], "Reply-To: <demo@example.net>\n") {
		t.Errorf("arrived: %v", got)
	}
}

func TestInvalidReplyAddressIsLeftOut(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	srv := boottest.StartSMTP(t, boottest.SMTPOptions{})
	n := p.linkNotice(1)
	n.ReplyTo = "a@example.org\r\nBcc: spy@example.org"
	p.put(t, n)
	p.pass(t, p.sender(t, smtpSender(t, srv.Address)))
	if got := srv.Talk().Messages; len(got) != 1 || strings.Contains(got[0], "Reply-To") || strings.Contains(got[0], "spy") {
		t.Errorf("arrived: %v", got)
	}
}

func TestTwoSendersSendEachNoticeOnce(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	srv := boottest.StartSMTP(t, boottest.SMTPOptions{})
	const total = 3 * notify.Batch / 2
	for i := range total {
		p.put(t, p.linkNotice(int64(i+1)))
	}
	var wg sync.WaitGroup
	for range 2 { // each with its own connection, like two processes
		s := p.senderOn(t, p.open(t), smtpSender(t, srv.Address), nil)
		wg.Go(func() {
			for range 2 {
				s.SendDue(t.Context())
			}
		})
	}
	wg.Wait()
	if strings.Contains(p.log.String(), tableFailed) {
		t.Error(p.log)
	}
	seen := map[string]bool{}
	for _, m := range srv.Talk().Messages {
		_, rest, _ := strings.Cut(m, "Message-ID: ")
		id, _, _ := strings.Cut(rest, "\n")
		if seen[id] {
			t.Errorf("%s was sent twice", id)
		}
		seen[id] = true
	}
	if len(seen) != total || p.waiting(t) != 0 {
		t.Errorf("%d of %d sent, %d waiting", len(seen), total, p.waiting(t))
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

func TestNoticeOfADeadSenderIsSentWhenItsLeaseEnds(t *testing.T) {
	t.Parallel()
	for _, sent := range []bool{false, true} {
		t.Run(fmt.Sprintf("the message was sent: %v", sent), func(t *testing.T) {
			t.Parallel()
			p, n := withLink(t)
			dead := p.sender(t, nil)
			claim(t, dead, n)
			if sent {
				must(t, dead.Deliver(t.Context(), n))
			}
			p.clock.advance(notify.Lease - time.Millisecond)
			next := p.sender(t, nil)
			count, due := p.pass(t, next)
			if count != 0 || !due.Equal(start().Add(notify.Lease)) {
				t.Errorf("%d sent during the lease, next %v", count, due)
			}
			p.clock.advance(time.Millisecond)
			if count, _ := p.pass(t, next); count != 1 {
				t.Errorf("%d sent after the lease: %s", count, p.log)
			}
			if got := p.received(t); len(got) != 1 || got[0].ID != n.ID {
				t.Errorf("the inbox holds %d messages", len(got))
			}
			if p.waiting(t) != 0 {
				t.Error("the notice is still there")
			}
		})
	}
}

func TestOnlyOneSenderGetsAClaim(t *testing.T) {
	t.Parallel()
	p, n := withLink(t)
	s := p.sender(t, nil)
	for i, want := range []bool{true, false} {
		if mine, err := s.Claim(t.Context(), n); err != nil || mine != want {
			t.Errorf("claim %d: %v, %v", i, mine, err)
		}
	}
	must(t, p.table.Write(t.Context(), table.Delete(n.Key())))
	if mine, err := s.Claim(t.Context(), n); err != nil || mine {
		t.Errorf("claim of one that is gone: %v, %v", mine, err)
	}
	if p.waiting(t) != 0 {
		t.Error("the claim brought the notice back")
	}
}

func TestSenderChangesNothingAfterItsLeaseHasEnded(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{
		"when it had sent": nil, "when it had failed": errors.New("no"),
		"when it was refused": notify.ErrPermanent, "when there was nothing to send": notify.ErrObsolete,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, n := withLink(t)
			s := p.sender(t, nil)
			for range 2 { // the late claim, and the next one
				claim(t, s, n)
				p.clock.advance(notify.Lease)
				n.Tries++
			}
			want, _ := p.stored(t, n)
			late := n
			late.Tries = 1
			if err := s.Mark(t.Context(), late, outcome); err != nil {
				t.Error(err)
			}
			if got, _ := p.stored(t, n); got != want || len(p.failed(t)) != 0 {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestMailIsRetriedUntilTheServerIsUp(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	address := freeAddress(t)
	s := p.sender(t, smtpSender(t, address))
	n := p.put(t, p.linkNotice(1)) // the upload succeeds even if the server is down
	wait := 750 * time.Millisecond // half to the whole of 1 s, with a jitter of one half
	for try := range int64(4) {
		sent, next := p.pass(t, s)
		if want := p.clock.now().Add(wait); sent != 0 || !next.Equal(want) {
			t.Fatalf("try %d: %d sent, next %v, want %v", try+1, sent, next, want)
		}
		stored, _ := p.stored(t, n)
		if stored.Tries != try+1 || !strings.Contains(stored.LastError, "refused") {
			t.Errorf("stored: %+v", stored)
		}
		if sent, again := p.pass(t, s); sent != 0 || !again.Equal(next) {
			t.Errorf("it was tried too early")
		}
		p.clock.advance(wait)
		wait *= 2
	}
	srv := boottest.StartSMTP(t, boottest.SMTPOptions{Address: address})
	if sent, _ := p.pass(t, s); sent != 1 || len(srv.Talk().Messages) != 1 || p.waiting(t) != 0 {
		t.Errorf("%d sent when the server is up: %s", sent, p.log)
	}
	var f files.File
	if err := p.table.Get(t.Context(), files.Key(n.Area, n.Owner, n.File), &f); err != nil {
		t.Errorf("the file: %v", err)
	}
}

func TestRetriesBackOffToAnHourWithJitter(t *testing.T) {
	t.Parallel()
	for jitter, want := range map[float64][]time.Duration{
		0: {500 * time.Millisecond, time.Second, 2 * time.Second, 1024 * time.Second, 30 * time.Minute, 30 * time.Minute},
		1: {time.Second, 2 * time.Second, 4 * time.Second, 2048 * time.Second, time.Hour, time.Hour},
	} {
		s := &notify.Sender{Config: notify.Config{Jitter: func() float64 { return jitter }}}
		for i, tries := range []int64{1, 2, 3, 12, 13, 1 << 40} {
			if got := notify.Backoff(s, tries); got != want[i] {
				t.Errorf("after %d tries with jitter %v: %v, want %v", tries, jitter, got, want[i])
			}
		}
	}
}

func TestNoticeIsGivenUpAfterADay(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	s := p.sender(t, smtpSender(t, freeAddress(t)))
	n := p.put(t, p.linkNotice(1))
	tries := 0
	for p.waiting(t) > 0 {
		_, next := p.pass(t, s)
		if tries++; tries > 100 {
			t.Fatal("it is never given up")
		}
		if !next.IsZero() {
			p.clock.advance(next.Sub(p.clock.now()))
		}
	}
	waited := p.clock.now().Sub(start())
	if waited < notify.GiveUp || waited > notify.GiveUp+time.Hour || tries < 30 {
		t.Errorf("given up after %v and %d tries", waited, tries)
	}
	if failed := p.failed(t); len(failed) != 1 || failed[0].ID != n.ID || !strings.Contains(failed[0].LastError, "refused") {
		t.Errorf("failed: %+v", failed)
	}
	if !strings.Contains(p.log.String(), "level=ERROR") {
		t.Error("the log has no error")
	}
}

func TestObsoleteNoticeIsNotSent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(t *testing.T, p *machine, n notify.Notice)
		kind   notify.Kind
	}{
		{"when the link has expired", func(t *testing.T, p *machine, n notify.Notice) {
			p.clock.advance(7 * 24 * time.Hour)
		}, notify.Link},
		{"when the PIN has expired", func(t *testing.T, p *machine, n notify.Notice) {
			p.clock.advance(15 * time.Minute)
		}, notify.PIN},
		{"when the file was removed", func(t *testing.T, p *machine, n notify.Notice) {
			must(t, p.table.Write(t.Context(), table.Delete(files.Key(n.Area, n.Owner, n.File))))
		}, notify.Link},
		{"when the file's own time is over", func(t *testing.T, p *machine, n notify.Notice) {
			key := files.Key(n.Area, n.Owner, n.File)
			must(t, p.table.Write(t.Context(), table.Update(key).Set("expires", p.clock.now().Unix())))
		}, notify.Link},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			n := p.linkNotice(1)
			if tt.kind == notify.PIN {
				n = p.pinNotice()
			}
			n = p.put(t, n)
			tt.change(t, p, n)
			s := p.sender(t, nil)
			if err := s.Deliver(t.Context(), n); !errors.Is(err, notify.ErrObsolete) {
				t.Errorf("Deliver gives %v", err)
			}
			if sent, next := p.pass(t, s); sent != 0 || !next.IsZero() {
				t.Errorf("%d sent, next %v", sent, next)
			}
			if len(p.received(t)) != 0 || p.waiting(t) != 0 || len(p.failed(t)) != 0 {
				t.Error("it was sent, or kept")
			}
			if !strings.Contains(p.log.String(), "notice dropped") {
				t.Errorf("the log: %s", p.log)
			}
		})
	}
}

func TestPINIsSentUntilItExpires(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	p.put(t, p.pinNotice())
	p.clock.advance(15*time.Minute - time.Second)
	if sent, _ := p.pass(t, p.sender(t, nil)); sent != 1 {
		t.Errorf("%d sent: %s", sent, p.log)
	}
}

func TestPermanentlyRefusedNoticeIsKeptForTheOperator(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	srv := boottest.StartSMTP(t, boottest.SMTPOptions{Replies: map[string]string{"RCPT": "550 5.1.1 no such user"}})
	n := p.put(t, p.linkNotice(1))
	s := p.sender(t, smtpSender(t, srv.Address))
	if err := s.Deliver(t.Context(), n); !errors.Is(err, notify.ErrPermanent) || !errors.Is(err, mail.ErrPermanent) {
		t.Errorf("Deliver gives %v", err)
	}
	if sent, next := p.pass(t, s); sent != 0 || !next.IsZero() || p.waiting(t) != 0 {
		t.Errorf("%d sent, next %v", sent, next)
	}
	if failed := p.failed(t); len(failed) != 1 || failed[0].ID != n.ID || !strings.Contains(failed[0].LastError, "550") {
		t.Errorf("failed: %+v", failed)
	}
}

func TestNoticeFailsForGoodWithoutAProvider(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	p.put(t, p.textNotice())
	p.pass(t, p.senderOn(t, p.table, nil, nil))
	if failed := p.failed(t); len(failed) != 1 || !strings.Contains(failed[0].LastError, "no SMS provider configured") {
		t.Errorf("failed: %+v", failed)
	}
}

func TestSenderNeedsAnAddressToSendFrom(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"", "ferry", "ferry@example.org\r\nBcc: x@example.org"} {
		if _, err := notify.NewSender(notify.Config{Mail: &flaky{}, From: from}); err == nil {
			t.Errorf("%q was accepted", from)
		}
	}
}
