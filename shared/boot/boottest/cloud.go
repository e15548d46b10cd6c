package boottest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
)

// Cloud stands in for what functions use besides table and buckets: topics, a
// queue, and the providers of mail and text messages. It keeps what it gets, and
// fails where an error is set.
type Cloud struct {
	mu        sync.Mutex
	Published map[notify.Topic][]notify.TopicMessage
	Delayed   map[string]time.Duration // by the message's receipt
	Mails     []mail.Message
	Texts     []notify.TextMessage

	TopicsErr, QueueErr, MailErr, SMSErr error
}

// Providers returns the stand-ins for a worker.
func (c *Cloud) Providers() worker.Providers {
	return worker.Providers{
		Topics:   c,
		Queue:    c,
		Couriers: c.Couriers(),
		MailFrom: "Ferry <ferry@example.com>",
	}
}

// Publish implements notify.Topics.
func (c *Cloud) Publish(
	_ context.Context,
	to notify.Topic,
	messages []notify.TopicMessage,
) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := slices.Repeat([]error{c.TopicsErr}, len(messages))
	if len(messages) > notify.MaxBatch {
		errs[0] = errors.New("too many messages at once")
	}
	if c.TopicsErr == nil {
		if c.Published == nil {
			c.Published = map[notify.Topic][]notify.TopicMessage{}
		}
		c.Published[to] = append(c.Published[to], messages...)
	}
	return errs
}

// Delay implements notify.Queue.
func (c *Cloud) Delay(_ context.Context, receipt string, wait time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Delayed == nil {
		c.Delayed = map[string]time.Duration{}
	}
	c.Delayed[receipt] = wait
	return c.QueueErr
}

// Couriers returns the providers of all channels. That of text messages names them sms-1, sms-2 and so on.
func (c *Cloud) Couriers() map[files.Channel]notify.Courier {
	texts := provider[notify.TextMessage]{c, "sms-%d", &c.Texts, &c.SMSErr}
	return map[files.Channel]notify.Courier{
		files.Mail: notify.ByMail(c.Mail()),
		files.SMS:  notify.ByText(texts),
	}
}

// Mail returns the provider of mail. It names messages mail-1, mail-2 and so on.
func (c *Cloud) Mail() mail.Sender {
	return provider[mail.Message]{c, "mail-%d", &c.Mails, &c.MailErr}
}

type provider[M any] struct {
	*Cloud
	id     string // with the message's number
	taken  *[]M
	failed *error
}

func (p provider[M]) Send(_ context.Context, m M) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *p.failed != nil {
		return "", *p.failed
	}
	*p.taken = append(*p.taken, m)
	return fmt.Sprintf(p.id, len(*p.taken)), nil
}
