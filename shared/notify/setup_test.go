package notify_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/notify"
	"ferry/shared/notify/inbox"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

const base = "https://ferry.example.org/v1"

func start() time.Time { return time.Date(2026, 8, 1, 14, 30, 0, 0, time.UTC) }

// clock is a clock that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return start().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// buffer is a log that many goroutines write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// must ends the test if there is an error.
var must = expect.NoErr

func testKey(t *testing.T) keys.LinkKey {
	t.Helper()
	key, err := keys.Parse(strings.Repeat("BwcH", 10) + "Bwc")
	must(t, err)
	return key
}

// machine is a table on disk, a clock and an inbox.
type machine struct {
	*testing.T
	path  string
	table *sqlite.DB
	clock *clock
	inbox *inbox.Inbox
	log   *buffer
	key   keys.LinkKey
	made  int
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	p := &machine{T: t, path: filepath.Join(t.TempDir(), "ferry.db"), clock: &clock{}, log: &buffer{}, key: testKey(t)}
	p.table = p.open()
	p.inbox = inbox.New(p.table, p.clock.now)
	return p
}

func (p *machine) open() *sqlite.DB {
	p.Helper()
	db, err := sqlite.Open(p.path, sqlite.Options{NoSync: true})
	must(p, err)
	p.Cleanup(func() { db.Close() })
	return db
}

// sender returns a Sender that sends all messages by a courier, or to the inbox if there is none.
func (p *machine) sender(tab table.Table, c notify.Courier) *notify.Sender {
	p.Helper()
	couriers := p.inbox.Couriers()
	if c != nil {
		couriers = both(c)
	}
	return p.newSender(notify.Config{Table: tab, Couriers: couriers})
}

// both returns a Courier for mails and text messages.
func both(c notify.Courier) map[files.Channel]notify.Courier {
	return map[files.Channel]notify.Courier{files.Mail: c, files.SMS: c}
}

func (p *machine) newSender(c notify.Config) *notify.Sender {
	p.Helper()
	c.Key, c.Now, c.Jitter = p.key, p.clock.now, func() float64 { return 0.5 }
	c.From = "Ferry <ferry@example.org>"
	c.Log = slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{ReplaceAttr: noDuration(p.T)}))
	s, err := notify.NewSender(c)
	must(p, err)
	return s
}

// noDuration refuses durations in a log: JSON has them in nanoseconds.
func noDuration(t *testing.T) func([]string, slog.Attr) slog.Attr {
	return func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			t.Errorf("%s is logged in nanoseconds", a.Key)
		}
		return a
	}
}

// linkNotice returns a notice about a file of demo that lasts for a week.
func (p *machine) linkNotice(id int64) notify.Notice {
	return notify.Notice{
		Kind: notify.Link, Channel: files.Mail, To: "ann@example.com", Lang: "en", Base: base,
		Expires: p.clock.now().Add(7 * 24 * time.Hour).Unix(),
		Owner:   "demo", Area: blob.Files, File: id, Name: "report.pdf", Length: 1_500_000,
		Sender: "demo", ReplyTo: "demo@example.net", Message: "Here it is.",
	}
}

func (p *machine) pinNotice() notify.Notice {
	return notify.Notice{
		Kind: notify.PIN, Channel: files.Mail, To: "demo@example.net", Lang: "en", Base: base,
		Expires: p.clock.now().Add(15 * time.Minute).Unix(), User: "demo", Nonce: "nonce",
	}
}

func (p *machine) inviteNotice() notify.Notice {
	n := p.pinNotice()
	n.Kind, n.Expires = notify.Invite, p.clock.now().Add(7*24*time.Hour).Unix()
	return n
}

func (p *machine) receiptNotice(id int64) notify.Notice {
	n := p.linkNotice(id)
	n.Kind, n.Expires = notify.Receipt, 0
	n.Recipient, n.To = n.To, n.ReplyTo
	return n
}

// put writes the file's record and the notice in one transaction, as an
// upload does, and returns the notice as stored.
func (p *machine) put(n notify.Notice) notify.Notice {
	p.Helper()
	p.made++
	op := n.Op(p.clock.now(), fmt.Sprintf("%06d", p.made))
	ops := []table.Op{op}
	if n.Kind == notify.Link {
		f := files.File{
			V:       1,
			Owner:   n.Owner,
			Area:    n.Area,
			ID:      n.File,
			Name:    n.Name,
			Length:  n.Length,
			Expires: n.Expires,
		}
		ops = append(ops, table.Put(files.Key(f.Area, f.Owner, f.ID), f))
	}
	must(p, p.table.Write(context.Background(), ops...))
	return op.Value.(notify.Notice)
}

// onlyID returns the ID of the first notice that is put.
func onlyID() string { return notify.ID(start(), "000001") }

// pass delivers what is due. The table must not fail.
func (p *machine) pass(s *notify.Sender) (sent int, next time.Time) {
	p.Helper()
	before := len(p.log.String())
	next = s.SendDue(p.Context())
	news := p.log.String()[before:]
	if strings.Contains(news, tableFailed) {
		p.Fatal(news)
	}
	return strings.Count(news, ` sent" `), next
}

// tableFailed is in the log if a lane could not read or write.
const tableFailed = "sending notices"

func (p *machine) received() []inbox.Message {
	p.Helper()
	messages, err := p.inbox.List(p.Context(), inbox.MaxList)
	must(p, err)
	return messages
}

// all returns the notices of a list.
func (p *machine) all(list iter.Seq2[notify.Notice, error]) (all []notify.Notice) {
	p.Helper()
	for n, err := range list {
		must(p, err)
		all = append(all, n)
	}
	return all
}

func (p *machine) failed() []notify.Notice { return p.all(notify.GivenUp(p.Context(), p.table)) }

// stored returns the notice and whether it is in the outbox.
func (p *machine) stored(n notify.Notice) (now notify.Notice, there bool) {
	p.Helper()
	now = p.find(n.ID)
	return now, now.ID != "" && now.Outcome == ""
}

// waiting counts what is in the outbox.
func (p *machine) waiting() int { return len(p.all(notify.Waiting(p.Context(), p.table))) }
