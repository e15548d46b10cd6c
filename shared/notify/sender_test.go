package notify_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/table"
)

func TestManySendersSendEachNoticeOnce(t *testing.T) {
	t.Parallel()
	p, f := newMachine(t), &provider{}
	const total = 3 * notify.Batch / 2
	all := make([]notify.Notice, total)
	for i := range all {
		all[i] = p.put(p.linkNotice(int64(i + 1)))
	}
	var wg sync.WaitGroup
	for worker := range 6 { // each with its own connection, like as many processes
		s := p.sender(p.open(), f.take)
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
	if len(slices.Compact(f.taken)) != total ||
		f.tries != total ||
		p.waiting() != 0 ||
		strings.Contains(p.log.String(), tableFailed) {
		t.Errorf("%d notices were sent by %d mails, %d wait: %s", total, f.tries, p.waiting(), p.log)
	}
}

func TestRestOfAFullBatchIsDueAtOnce(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	count := map[string]int{} // by shard
	for i := int64(1); len(count) == 0 || slices.Max(slices.Collect(maps.Values(count))) <= notify.Batch; i++ {
		count[p.put(p.linkNotice(i)).Key().PK]++
	}
	all := p.waiting()
	s := p.sender(p.table, nil)
	if sent, next := p.pass(s); sent != all-1 || !next.Equal(start()) {
		t.Errorf("%d of %d sent, next %v", sent, all, next)
	}
	if sent, next := p.pass(s); sent != 1 || !next.IsZero() {
		t.Errorf("%d sent, next %v", sent, next)
	}
}

func TestSenderNeedsAnAddressToSendFrom(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"", "ferry", "ferry@example.org\r\nBcc: x@example.org"} {
		if _, err := notify.NewSender(notify.Config{Couriers: both((&provider{}).take), From: from}); err == nil {
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
	good := notify.TextMessage{ID: "1", To: "+393331234567", Text: "hi"}
	for number, ok := range map[string]bool{
		good.To: true, "+123456789012345": true, "3331234567": false, "+39 333 1234567": false,
		"+1234567890123456": false, "+0333123456": false,
	} {
		m := good
		m.To = number
		if err := m.Check(); (err == nil) != ok {
			t.Errorf("%s: %v", number, err)
		}
	}
	for _, m := range []notify.TextMessage{{ID: "1", To: good.To}, {To: good.To, Text: "hi"}} {
		expect.Err(t, "an incomplete message", m.Check(), notify.ErrTextRefused)
	}
}

// odd is an item of the outbox that is not a Notice.
type odd struct {
	V         int64  `json:"v"`
	ID        string `json:"id,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Tries     string `json:"tries,omitempty"`
	NotBefore int64  `json:"notBefore"`
}

// poison is the key of an item that no sender can read.
func poison() table.Key { return table.Key{PK: "outbox#0", SK: "0000000000000-poison"} }

func TestUnreadableNoticeDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	item := func(v odd) func(*machine) table.Op {
		return func(*machine) table.Op { return table.Put(poison(), v) }
	}
	changed := func(change func(*notify.Notice)) func(*machine) table.Op {
		return func(p *machine) table.Op {
			n := p.pinNotice()
			change(&n)
			return n.Op(start(), "x")
		}
	}
	for name, put := range map[string]func(*machine) table.Op{
		"an item of another shape":   item(odd{V: 1, ID: poison().SK, Tries: "many"}),
		"an item of a later version": item(odd{V: 2, ID: poison().SK}),
		"an item without an ID":      item(odd{V: 1}),
		"an item in the wrong place": func(p *machine) table.Op {
			op := link(p).Op(start(), "x")
			op.Key.SK += "-y"
			return op
		},
		"a notice of an unknown kind":     changed(func(n *notify.Notice) { n.Kind = "fax" }),
		"a notice for an unknown channel": changed(func(n *notify.Notice) { n.Channel = "pigeon" }),
		"a notice to a malformed address": changed(func(n *notify.Notice) { n.To = "nobody" }),
		"a PIN that is to be sent as text": changed(func(n *notify.Notice) {
			n.Channel, n.To = files.SMS, "+393331234567"
		}),
	} {
		for by, message := range map[string]bool{"found by a lane": false, "brought by a message": true} {
			t.Run(name+", "+by, func(t *testing.T) {
				t.Parallel()
				p := newMachine(t)
				op := put(p)
				must(t, p.table.Write(t.Context(), op))
				for i := range int64(5) {
					p.put(p.linkNotice(i + 1))
				}
				s := p.sender(p.table, nil)
				if message {
					if again, err := s.Handle(t.Context(), op.Key); err != nil || again != 0 {
						t.Errorf("again after %v, %v", again, err)
					}
				}
				if sent, next := p.pass(s); sent != 5 || !next.IsZero() || p.waiting() != 0 {
					t.Errorf("%d sent, next %v, %d waiting: %s", sent, next, p.waiting(), p.log)
				}
				if failed := p.failed(); len(failed) != 1 || failed[0].ID != op.Key.SK || failed[0].LastError == "" {
					t.Errorf("failed: %+v", failed)
				}
			})
		}
	}
}

func TestLogHoldsNoSecretAndNoWholeAddress(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	token, code := key.Recipient("files", "demo", 1, onlyID()), key.PIN("nonce")
	address := base + "/download/file?lang=en&k=" + token
	for _, tt := range []struct {
		notice         func(*machine) notify.Notice
		quoted, masked string
	}{
		{
			notice: link,
			quoted: "<ann@example.com> " + address + " and k=" + token + " and " + address[:len(address)-3] + "...",
			masked: "to=a***@example.com",
		},
		{
			notice: pin,
			quoted: "code " + code + " for demo@example.net, call +393331234567",
			masked: "to=d***@example.net",
		},
		{notice: text, quoted: "+393331234567", masked: "to=+39***67"},
	} {
		r := begin(t, tt.notice, true)
		tried(errors.New("451 suspicious: " + tt.quoted))(r)
		stored := r.find(r.notice.ID).LastError
		waited(r)
		sent(r)
		if log := r.log.String(); !strings.HasPrefix(stored, "451") || !strings.Contains(log, tt.masked) {
			t.Errorf("%q is stored and %s logged", stored, log)
		}
		for _, secret := range []string{"ann@example.com", "demo@example.net", "3331234567", token[:30], code} {
			if strings.Contains(stored+r.log.String(), secret) {
				t.Errorf("%q is stored or logged: %q, %s", secret, stored, r.log)
			}
		}
	}
}
