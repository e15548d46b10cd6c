package main

import (
	"bufio"
	"fmt"
	"net"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// notices fills the outbox of ferry serve while the mail server keeps it
// waiting, and counts the mails that come then. The control sends as many mails,
// as many at once, with a connection each, and notes each with one fsync.
func (b *bench) notices(s *subject) {
	sink := &sink{Listener: must(net.Listen("tcp", "127.0.0.1:0")), came: make(chan time.Time, b.requests)}
	address := sink.Addr().String()
	go func() {
		for conn, err := sink.Accept(); err == nil; conn, err = sink.Accept() {
			go sink.talk(conn)
		}
	}()
	if s.name == control {
		log := must(os.Create(filepath.Join(b.dir, "sent")))
		text := []byte("Subject: a file\r\n\r\n" + strings.Repeat("a line of the message\r\n", 150))
		mail := func() error {
			if err := smtp.SendMail(address, nil, "ferry@example.org", []string{"ann@example.com"}, text); err != nil {
				return err
			}
			if _, err := log.WriteString("sent\n"); err != nil {
				return err
			}
			return log.Sync()
		}
		s.op = func() float64 {
			parallel(b.requests, 4, mail)
			return sink.rate(b.requests)
		}
		return
	}
	b.serve(s, "on", "FERRY_SMTP_URL=smtp://"+address,
		"FERRY_NOTICES_PER_HOUR=0", "FERRY_NOTICES_PER_DAY=0", "FERRY_NOTICES_PER_RECIPIENT=0")
	s.login()
	s.op = func() float64 {
		sink.wait.Lock()
		s.files(b.requests, 1, "?m=ann@example.com")
		sink.wait.Unlock()
		return sink.rate(b.requests)
	}
}

// sink is a mail server that takes everything and keeps nothing.
type sink struct {
	net.Listener
	wait sync.Mutex     // while it is locked nobody is greeted
	came chan time.Time // each mail
}

// rate waits for mails and returns how many came in a second, from the first to
// the last.
func (s *sink) rate(count int) float64 {
	first, last := <-s.came, time.Time{}
	for range count - 1 {
		select {
		case last = <-s.came:
		case <-time.After(time.Minute):
			check(fmt.Errorf("not all of %d mails have come", count))
		}
	}
	return float64(count-1) / last.Sub(first).Seconds()
}

// talk is as much of SMTP as the two senders need.
func (s *sink) talk(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	say := func(line string) { fmt.Fprint(conn, line, "\r\n") }
	s.wait.Lock()
	say("220 sink")
	s.wait.Unlock()
	for lines.Scan() {
		switch lines.Text() {
		case "DATA":
			say("354 go on")
			for lines.Scan() && lines.Text() != "." {
			}
			s.came <- time.Now()
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 fine")
		}
	}
}
