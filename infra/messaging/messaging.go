// Package messaging makes the topics, queues and subscriptions of template.yaml
// on stand-ins for AWS.
package messaging

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"ferry/infra/template"
)

// Messaging is that of one stack. What is made goes to the stack's values under
// the names of the template.
type Messaging struct {
	template.Stack
	name string // of the stack, with which all names begin
	SNS  *sns.Client
	SQS  *sqs.Client
	SES  *sesv2.Client
}

// New makes all that the template has. The stack's values must have its
// parameters and AWS's own.
func New(ctx context.Context, cfg aws.Config, name string, s template.Stack) (*Messaging, error) {
	m := &Messaging{Stack: s, name: name, SNS: sns.NewFromConfig(cfg), SQS: sqs.NewFromConfig(cfg), SES: sesv2.NewFromConfig(cfg)}
	for _, make := range []func(context.Context) error{m.topics, m.queues, m.mailEvents, m.subscriptions} {
		if err := make(ctx); err != nil {
			return nil, fmt.Errorf("making the stack's topics and queues: %w", err)
		}
	}
	return m, nil
}

// Verify lets SES send from the stack's sender.
func (m *Messaging) Verify(ctx context.Context) error {
	_, err := m.SES.CreateEmailIdentity(ctx, &sesv2.CreateEmailIdentityInput{EmailIdentity: aws.String(m.Values["SenderAddress"])})
	return err
}

// Queue makes a queue.
func (m *Messaging) Queue(ctx context.Context, id string, p template.Object) error {
	attributes := map[string]string{}
	for _, name := range []string{"VisibilityTimeout", "MessageRetentionPeriod", "RedrivePolicy"} {
		if p[name] == nil {
			continue
		}
		text, err := m.attribute(p[name])
		if err != nil {
			return err
		}
		attributes[name] = text
	}
	made, err := m.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(m.name + "-" + id), Attributes: attributes})
	if err != nil {
		return err
	}
	a, err := m.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: made.QueueUrl, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	if err != nil {
		return err
	}
	m.Values[id], m.Values[id+".Arn"] = *made.QueueUrl, a.Attributes["QueueArn"]
	return nil
}

// Subscribe lets a topic's messages go to a queue.
func (m *Messaging) Subscribe(ctx context.Context, topic, queue string, attributes map[string]string) error {
	_, err := m.SNS.Subscribe(ctx, &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: &queue, Attributes: attributes})
	return err
}

// each yields the resources of a type that the stack has, with their properties.
func (m *Messaging) each(kind string, do func(id string, p template.Object) error) error {
	for id, r := range m.Resources {
		r, _ := r.(template.Object)
		if r["Type"] != kind {
			continue
		}
		if c, ok := r["Condition"].(string); ok {
			if holds, err := m.Condition(c); err != nil || !holds {
				if err != nil {
					return err
				}
				continue
			}
		}
		p, _ := r["Properties"].(template.Object)
		if err := do(id, p); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

func (m *Messaging) topics(ctx context.Context) error {
	return m.each("AWS::SNS::Topic", func(id string, _ template.Object) error {
		made, err := m.SNS.CreateTopic(ctx, &sns.CreateTopicInput{Name: aws.String(m.name + "-" + id)})
		if err != nil {
			return err
		}
		m.Values[id] = *made.TopicArn
		return nil
	})
}

// queues makes first those of the dead, of which the others speak.
func (m *Messaging) queues(ctx context.Context) error {
	for _, dead := range []bool{true, false} {
		err := m.each("AWS::SQS::Queue", func(id string, p template.Object) error {
			if (p["RedrivePolicy"] == nil) != dead {
				return nil
			}
			return m.Queue(ctx, id, p)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mailEvents makes the configuration set that mail is sent with.
func (m *Messaging) mailEvents(ctx context.Context) error {
	m.Values["MailEvents"] = m.name + "-mail"
	_, err := m.SES.CreateConfigurationSet(ctx, &sesv2.CreateConfigurationSetInput{ConfigurationSetName: aws.String(m.Values["MailEvents"])})
	return err
}

// subscriptions makes those of queues.
func (m *Messaging) subscriptions(ctx context.Context) error {
	return m.each("AWS::SNS::Subscription", func(_ string, p template.Object) error {
		if p["Protocol"] != "sqs" {
			return nil
		}
		text := map[string]string{}
		for _, name := range []string{"TopicArn", "Endpoint", "FilterPolicy", "RawMessageDelivery"} {
			var err error
			if text[name], err = m.attribute(p[name]); err != nil {
				return err
			}
		}
		return m.Subscribe(ctx, text["TopicArn"], text["Endpoint"], map[string]string{
			"FilterPolicy": text["FilterPolicy"], "RawMessageDelivery": text["RawMessageDelivery"],
		})
	})
}

// attribute is a property as SNS and SQS take it: an object becomes JSON.
func (m *Messaging) attribute(v any) (string, error) {
	r, err := m.Resolve(v)
	if err != nil {
		return "", err
	}
	if o, ok := r.(template.Object); ok {
		text, err := json.Marshal(o)
		return string(text), err
	}
	return fmt.Sprint(r), nil
}
