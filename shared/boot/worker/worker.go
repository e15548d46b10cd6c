// Package worker runs the Lambda functions that are not endpoints: they relay new records of the
// table's stream, send notices, record feedback, sweep, and make the link key. Start reading with
// Run, then notices.go.
package worker

import (
	"context"
	"os"
	"sync"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/boot/lambda"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/service"
)

// Backends open what a worker uses besides table and buckets. A main names those that
// it needs.
type Backends struct {
	Topics  func(aws.Config, map[notify.Topic]string) notify.Topics // FERRY_NOTICES_TOPIC and FERRY_EVENTS_TOPIC
	Queue   func(c aws.Config, url string) notify.Queue             // FERRY_QUEUE
	Courier Courier
}

// Courier opens the provider of a channel.
type Courier func(*lambda.Cloud, *Providers)

// Mail opens the provider of mails: FERRY_MAIL_EVENTS, and FERRY_MAIL_FROM.
func Mail(open func(c aws.Config, set string) mail.Sender) Courier {
	return func(c *lambda.Cloud, w *Providers) {
		sender := open(c.ConfigOf("SESV2"), c.Name("FERRY_MAIL_EVENTS"))
		w.Couriers = map[files.Channel]notify.Courier{files.Mail: notify.ByMail(sender)}
		w.MailFrom = c.Name("FERRY_MAIL_FROM")
	}
}

// SMS opens the provider of text messages: FERRY_SMS_SENDER and FERRY_SMS_NUMBER, if set.
func SMS(open func(c aws.Config, name, number string) notify.TextSender) Courier {
	return func(c *lambda.Cloud, w *Providers) {
		sender := open(
			c.ConfigOf("SNS"),
			c.Getenv("FERRY_SMS_SENDER"),
			c.Getenv("FERRY_SMS_NUMBER"),
		)
		w.Couriers = map[files.Channel]notify.Courier{files.SMS: notify.ByText(sender)}
	}
}

// Providers are what a worker may use besides table and buckets.
type Providers struct {
	Topics   notify.Topics
	Queue    notify.Queue
	Couriers map[files.Channel]notify.Courier
	MailFrom string // the sender of mails
	Invoke   lambda.Invoke
}

// Worker is a service, with what a worker uses besides.
type Worker struct {
	*service.Service
	Providers
}

// Run runs the function that handler makes from a Worker with the backends and ports
// that a main names. It does not return.
func Run[Handler any](handler func(*Worker) Handler, b Backends, ports ...lambda.Opener) {
	var with Providers
	f := lambda.Open(os.Getenv, append(ports, with.Opener(b))...)
	var once sync.Once
	var made awslambda.Handler // at the first event for which there is a service
	awslambda.Start(program(func(ctx context.Context, event []byte) ([]byte, error) {
		s, err := f.Service(ctx)
		if err != nil {
			return nil, err
		}
		once.Do(func() { made = awslambda.NewHandler(handler(&Worker{s, with})) })
		return made.Invoke(ctx, event)
	}))
}

// program is an awslambda.Handler.
type program func(ctx context.Context, event []byte) ([]byte, error)

// Invoke implements awslambda.Handler.
func (p program) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	return p(ctx, event)
}

// Opener returns an opener of what is not a service's port.
func (w *Providers) Opener(b Backends) lambda.Opener {
	return func(c *lambda.Cloud, _ *service.Ports) {
		w.Invoke = lambda.NewInvoke(c)
		if b.Topics != nil {
			w.Topics = b.Topics(c.ConfigOf("SNS"), map[notify.Topic]string{
				notify.NoticesTopic: c.Name("FERRY_NOTICES_TOPIC"),
				notify.EventsTopic:  c.Name("FERRY_EVENTS_TOPIC"),
			})
		}
		if b.Queue != nil {
			w.Queue = b.Queue(c.ConfigOf("SQS"), c.Name("FERRY_QUEUE"))
		}
		if b.Courier != nil {
			b.Courier(c, w)
		}
	}
}
