package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/table"

	"ferry/shared/notify"

	"ferry/shared/api"
)

// mailsAtOnce is how many mails ferry serve sends at once.
const mailsAtOnce = 4

// notices starts ferry serve on an outbox that is full, and counts the mails
// that come to a mail server. The control sends as many mails to it, as many
// at once, with a connection each, and writes down each with one fsync.
func (b *bench) notices() ([]row, error) {
	sink, err := newSink()
	if err != nil {
		return nil, err
	}
	defer sink.close()
	r := row{what: fmt.Sprintf("notifications by mail, %d at once", mailsAtOnce), unit: "1/s", target: ">= 0.25"}
	r.ferry, r.control, r.ratio, err = pairs(b.Rounds,
		func() (float64, error) {
			speed, peak, err := b.outbox(sink)
			r.memory = max(r.memory, peak)
			return speed, err
		},
		func() (float64, error) { return b.mails(sink) })
	return []row{r}, err
}

// outbox fills an outbox, lets ferry serve empty it, and returns the mails a second.
func (b *bench) outbox(s *sink) (speed float64, peak int64, err error) {
	dir, err := b.folder("outbox")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	if err := fillOutbox(b.ctx, dir, b.Requests); err != nil {
		return 0, 0, err
	}
	s.expect(b.Requests)
	f, err := b.ferry(dir, true, "FERRY_SMTP_URL=smtp://"+s.address)
	if err != nil {
		return 0, 0, err
	}
	defer func() { peak = f.stop() }()
	speed, err = s.wait(b.ctx)
	return speed, 0, err
}

// fillOutbox writes a file and the notices of so many recipients.
func fillOutbox(ctx context.Context, dir string, count int) error {
	data, err := local.Open(dir, api.Settings{}, local.Options{NoSync: true})
	if err != nil {
		return err
	}
	defer data.Close()
	now := time.Now()
	f := files.File{V: 1, Owner: user, Area: blob.Files, ID: 1, Name: "report.pdf", Length: smallSize, Expires: now.Add(time.Hour).Unix()}
	ops := []table.Op{table.Put(files.Key(f.Area, f.Owner, f.ID), f)}
	for i := range count {
		n := notify.Notice{
			Kind: notify.Link, Channel: notify.Mail, To: fmt.Sprintf("ann%d@example.com", i), Lang: "en", Base: "https://ferry.example.org/v1",
			Expires: f.Expires, Owner: f.Owner, Area: f.Area, File: f.ID, Name: f.Name, Length: f.Length, Sender: user, Message: "Here it is.",
		}
		if ops = append(ops, n.Op(now, fmt.Sprintf("%06d", i))); len(ops) == table.MaxOps || i == count-1 {
			if err := data.Table.Write(ctx, ops...); err != nil {
				return err
			}
			ops = nil
		}
	}
	return nil
}

// mails is the control.
func (b *bench) mails(s *sink) (float64, error) {
	dir, err := b.folder("mails")
	if err != nil {
		return 0, err
	}
	log, err := os.Create(filepath.Join(dir, "sent"))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	s.expect(b.Requests)
	var left atomic.Int64
	left.Store(int64(b.Requests))
	failed := make(chan error, mailsAtOnce)
	var wg sync.WaitGroup
	for range mailsAtOnce {
		wg.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				if err := sendMail(s.address, n, log); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return s.wait(b.ctx)
	}
}

func sendMail(address string, n int64, log *os.File) error {
	text := fmt.Sprintf("From: ferry@example.org\r\nTo: ann%d@example.com\r\nSubject: a file\r\n\r\n%s", n, strings.Repeat("a line of the message\r\n", 150))
	if err := smtp.SendMail(address, nil, "ferry@example.org", []string{fmt.Sprintf("ann%d@example.com", n)}, []byte(text)); err != nil {
		return fmt.Errorf("sending mail: %w", err)
	}
	if _, err := fmt.Fprintln(log, n); err != nil {
		return err
	}
	return log.Sync()
}

// sink is a mail server that takes everything and keeps nothing.
type sink struct {
	address  string
	listener net.Listener

	mu          sync.Mutex
	left        int
	total       int
	first, last time.Time
	all         chan struct{} // closed when as many mails have come as are expected
}

func newSink() (*sink, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{address: l.Addr().String(), listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.talk(conn)
		}
	}()
	return s, nil
}

func (s *sink) close() { s.listener.Close() }

func (s *sink) expect(count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.total, s.first, s.all = count, count, time.Time{}, make(chan struct{})
}

// wait returns how many mails came in a second, from the first to the last.
func (s *sink) wait(ctx context.Context) (float64, error) {
	select {
	case <-s.all:
		return float64(s.total-1) / s.last.Sub(s.first).Seconds(), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(10 * time.Minute):
		return 0, fmt.Errorf("%d of %d mails did not come", s.left, s.total)
	}
}

func (s *sink) came() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	if s.first.IsZero() {
		s.first = s.last
	}
	if s.left--; s.left == 0 {
		close(s.all)
	}
}

// talk is as much of SMTP as the two senders need.
func (s *sink) talk(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	say := func(line string) { fmt.Fprint(conn, line, "\r\n") }
	say("220 sink")
	for inMail := false; lines.Scan(); {
		switch line := lines.Text(); {
		case inMail && line != ".":
		case inMail:
			inMail = false
			s.came()
			say("250 taken")
		case line == "DATA":
			inMail = true
			say("354 go on")
		case line == "QUIT":
			say("221 bye")
			return
		case strings.HasPrefix(line, "EHLO"):
			say("250-sink\r\n250 8BITMIME")
		default:
			say("250 fine")
		}
	}
}
