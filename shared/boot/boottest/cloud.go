package boottest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/notify/sms"

	"ferry/shared/api"
)

// Cloud stands for what functions reach besides table and buckets: topics, a
// queue, and the providers of mail and text messages. It keeps what it gets,
// and fails with the errors that it is given.
type Cloud struct {
	mu        sync.Mutex
	Published map[notify.Topic][]notify.TopicMessage
	Delayed   map[string]time.Duration // by the message's receipt
	Mails     []mail.Message
	Texts     []sms.Message

	TopicsErr, QueueErr, MailErr, SMSErr error
}

// Put makes it part of ports.
func (c *Cloud) Put(p *api.Ports) {
	p.Topics, p.Queue, p.Mail, p.SMS, p.MailFrom = c, c, c.Mail(), c.SMS(), "Ferry <ferry@example.com>"
}

// Publish implements relay.Topics.
func (c *Cloud) Publish(_ context.Context, to notify.Topic, messages []notify.TopicMessage) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := make([]error, len(messages))
	for i := range errs {
		errs[i] = c.TopicsErr
	}
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

// Delay implements relay.Queue.
func (c *Cloud) Delay(_ context.Context, receipt string, wait time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Delayed == nil {
		c.Delayed = map[string]time.Duration{}
	}
	c.Delayed[receipt] = wait
	return c.QueueErr
}

// Mail is the provider of mail. It knows messages as mail-1, mail-2 and so on.
func (c *Cloud) Mail() mail.Sender { return mailSender{c} }

// SMS is the provider of text messages. It knows them as sms-1, sms-2 and so on.
func (c *Cloud) SMS() sms.Sender { return smsSender{c} }

type mailSender struct{ *Cloud }

func (s mailSender) Send(_ context.Context, m mail.Message) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.MailErr != nil {
		return "", s.MailErr
	}
	s.Mails = append(s.Mails, m)
	return fmt.Sprintf("mail-%d", len(s.Mails)), nil
}

type smsSender struct{ *Cloud }

func (s smsSender) Send(_ context.Context, m sms.Message) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.SMSErr != nil {
		return "", s.SMSErr
	}
	s.Texts = append(s.Texts, m)
	return fmt.Sprintf("sms-%d", len(s.Texts)), nil
}
