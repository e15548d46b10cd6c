package main

import (
	"fmt"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ferry/shared/boot/boottest"
)

// notices fills the outbox of `ferry serve` while the mail server makes it wait, and then counts
// the mails that arrive. The control sends the same number of mails, equally many at once, each on
// its own connection and logged with one fsync.
func (b *bench) notices(s *subject) {
	sink := must(boottest.NewSMTP(b.ctx, boottest.SMTPOptions{}))
	if s.name == control {
		log := must(os.Create(filepath.Join(b.dir, "sent")))
		text := []byte("Subject: a file\r\n\r\n" + strings.Repeat(
			"a line of the message\r\n",
			150,
		))
		mail := func() error {
			err := smtp.SendMail(
				sink.Address,
				nil,
				"ferry@example.org",
				[]string{"ann@example.com"},
				text,
			)
			if err != nil {
				return err
			}
			if _, err := log.WriteString("sent\n"); err != nil {
				return err
			}
			return log.Sync()
		}
		s.op = func() float64 {
			before := len(sink.Talk().Times)
			parallel(b.requests, 4, mail)
			return mailRate(sink, before, b.requests)
		}
		return
	}
	b.serve(s, "on", "FERRY_SMTP_URL=smtp://"+sink.Address,
		"FERRY_NOTICES_PER_HOUR=0", "FERRY_NOTICES_PER_DAY=0", "FERRY_NOTICES_PER_RECIPIENT=0")
	s.login()
	s.op = func() float64 {
		before := len(sink.Talk().Times)
		sink.Hold.Lock()
		s.files(b.requests, 1, "?m=ann@example.com")
		sink.Hold.Unlock()
		return mailRate(sink, before, b.requests)
	}
}

// mailRate waits until count mails have arrived after the first ones, and returns how many arrived
// per second, from the first to the last.
func mailRate(sink *boottest.SMTPServer, after, count int) float64 {
	for end := time.Now().Add(5 * time.Minute); len(sink.Talk().Times) < after+count; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			check(fmt.Errorf("not all of %d mails have come", count))
		}
	}
	times := sink.Talk().Times[after:]
	return float64(count-1) / times[count-1].Sub(times[0]).Seconds()
}
