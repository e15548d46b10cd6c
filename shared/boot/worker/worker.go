// Package worker runs as Lambda functions what is not an endpoint: it relays new
// records of the table's stream, sends notices, records feedback, sweeps, and makes
// the link key. Start reading with Run, then notices.go.
package worker

import (
	"context"
	"fmt"
	"os"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/api"
	"ferry/shared/boot/lambda"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
)

// Backends open what a worker uses besides table and buckets. A main names those that
// it needs.
type Backends struct {
	Topics func(aws.Config, map[notify.Topic]string) notify.Topics   // FERRY_NOTICES_TOPIC and FERRY_EVENTS_TOPIC
	Queue  func(c aws.Config, url string) notify.Queue               // FERRY_QUEUE
	Mail   func(c aws.Config, set string) mail.Sender                // FERRY_MAIL_EVENTS, and FERRY_MAIL_FROM
	SMS    func(c aws.Config, name, number string) notify.TextSender // FERRY_SMS_SENDER and FERRY_SMS_NUMBER, if set
}

// Providers are what a worker may use besides table and buckets.
type Providers struct {
	Topics   notify.Topics
	Queue    notify.Queue
	Mail     mail.Sender
	MailFrom string // the sender of mails
	SMS      notify.TextSender
	Invoke   lambda.Invoke
}

// Worker is a function with its ports.
type Worker struct {
	*lambda.Function
	Providers
}

// begun makes the calls that must come before the ports are used, then handles the event.
type begun struct {
	*Worker
	awslambda.Handler
}

// Invoke implements awslambda.Handler.
func (b begun) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	if err := b.Begin(ctx); err != nil {
		return nil, fmt.Errorf("preparing the function: %w", err)
	}
	return b.Handler.Invoke(ctx, event)
}

// With returns a Worker whose ports were opened elsewhere, as in tests.
func With(p *api.Ports, with Providers) *Worker { return &Worker{lambda.With(p), with} }

// Run runs the function that handler makes from a Worker with the backends and ports
// that a main names. It does not return.
func Run[Handler any](handler func(*Worker) Handler, b Backends, ports ...lambda.Opener) {
	w := &Worker{}
	w.Function = lambda.Open(os.Getenv, append(ports, w.Opener(b))...)
	awslambda.Start(begun{w, awslambda.NewHandler(handler(w))})
}

// Opener returns an opener of a worker's own ports.
func (w *Worker) Opener(b Backends) lambda.Opener {
	return func(c *lambda.Cloud, _ *api.Ports) {
		w.Invoke = lambda.NewInvoke(c)
		if b.Topics != nil {
			w.Topics = b.Topics(c.Service("SNS"), map[notify.Topic]string{
				notify.NoticesTopic: c.Name("FERRY_NOTICES_TOPIC"), notify.EventsTopic: c.Name("FERRY_EVENTS_TOPIC"),
			})
		}
		if b.Queue != nil {
			w.Queue = b.Queue(c.Service("SQS"), c.Name("FERRY_QUEUE"))
		}
		if b.Mail != nil {
			w.Mail, w.MailFrom = b.Mail(c.Service("SESV2"), c.Name("FERRY_MAIL_EVENTS")), c.Name("FERRY_MAIL_FROM")
		}
		if b.SMS != nil {
			w.SMS = b.SMS(c.Service("SNS"), c.Getenv("FERRY_SMS_SENDER"), c.Getenv("FERRY_SMS_NUMBER"))
		}
	}
}
