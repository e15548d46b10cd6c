// Package fanout tests the path of notices and events as it is in the cloud:
// the topics, queues, filters and dead-letter queues of template.yaml, made on
// stand-ins for AWS, with the real handlers of the functions between them.
package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"ferry/infra/template"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/function"
	"ferry/shared/boot/port"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"
	"ferry/shared/boot/port/sesmail"
	"ferry/shared/boot/port/smstext"
	"ferry/shared/boot/port/snstopics"
	"ferry/shared/boot/port/sqsqueue"
	"ferry/shared/boot/port/ssmkey"
	"ferry/shared/table/dynamo"
	"ferry/shared/users"
)

// stack is what the template says, on the stand-ins.
type stack struct {
	*testing.T
	template.Stack
	name    string
	ann     string        // who gets mail
	phone   string        // who gets text messages
	ahead   time.Duration // of the functions' clocks
	aws     map[string]string
	streams *dynamodbstreams.Client
	sns     *sns.Client
	sqs     *sqs.Client
	ses     *sesv2.Client

	relay, email, sms, feedback, upload *function.Function
}

// begin makes a stack with these parameters.
func begin(t *testing.T, parameters map[string]string) *stack {
	t.Helper()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/fanout")
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	check(t, err)
	tpl, err := template.Read(filepath.Join(boottest.Root(t), "template.yaml"))
	check(t, err)
	run := time.Now().UnixNano() % 1e7 // another for each run against the same stand-ins
	name := strings.ToLower(t.Name())
	name = fmt.Sprintf("%s-%07d", name[:min(len(name), 40)], run)
	s := &stack{
		T: t, name: name, aws: map[string]string{},
		ann: "ann@" + name + ".example.com", phone: fmt.Sprintf("+39333%07d", run),
		streams: dynamodbstreams.NewFromConfig(cfg), sns: sns.NewFromConfig(cfg), sqs: sqs.NewFromConfig(cfg), ses: sesv2.NewFromConfig(cfg),
	}
	s.Stack = template.Stack{Template: tpl, Values: map[string]string{
		"AWS::StackName": s.name, "AWS::Region": cfg.Region, "AWS::Partition": "aws", "AWS::AccountId": "123456789012",
		"PublicUrl": "https://files.example.com/v1", "SenderAddress": s.name + "@example.com",
	}}
	for k, v := range parameters {
		s.Values[k] = v
	}
	s.data(cfg)
	s.topics()
	s.queues()
	s.subscriptions()
	s.functions()
	check(t, users.NewStore(s.upload.Ports.Table, time.Now).Add(t.Context(), users.User{Name: "alice", State: users.Active}))
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// data makes the table, the buckets, the key, and what mail is sent with.
func (s *stack) data(cfg aws.Config) {
	s.Helper()
	check(s, dynamo.CreateTable(s.Context(), dynamodb.NewFromConfig(cfg), s.name))
	buckets := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	s.Values["Table"], s.Values["FilesBucket"], s.Values["BackupBucket"] = s.name, s.name+"-f", s.name+"-b"
	for _, b := range []string{s.Values["FilesBucket"], s.Values["BackupBucket"]} {
		_, err := buckets.CreateBucket(s.Context(), &s3.CreateBucketInput{Bucket: &b})
		check(s, err)
	}
	key := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"Parameter":{"Value":"`+boottest.Key+`"}}`)
	}))
	s.Cleanup(key.Close)
	s.aws["AWS_ENDPOINT_URL_SSM"] = key.URL
	s.Values["MailEvents"] = s.name + "-mail"
	_, err := s.ses.CreateConfigurationSet(s.Context(), &sesv2.CreateConfigurationSetInput{ConfigurationSetName: aws.String(s.Values["MailEvents"])})
	check(s, err)
}

// verify lets SES send from the stack's sender.
func (s *stack) verify() {
	s.Helper()
	_, err := s.ses.CreateEmailIdentity(s.Context(), &sesv2.CreateEmailIdentityInput{EmailIdentity: aws.String(s.Values["SenderAddress"])})
	check(s, err)
}

// each yields the resources of a type that the stack has, with their properties.
func (s *stack) each(kind string, do func(id string, p template.Object)) {
	s.Helper()
	for id, r := range s.Resources {
		r, _ := r.(template.Object)
		if r["Type"] != kind {
			continue
		}
		if c, ok := r["Condition"].(string); ok {
			if holds, err := s.Condition(c); err != nil || !holds {
				check(s, err)
				continue
			}
		}
		p, _ := r["Properties"].(template.Object)
		do(id, p)
	}
}

func (s *stack) topics() {
	s.Helper()
	s.each("AWS::SNS::Topic", func(id string, _ template.Object) {
		made, err := s.sns.CreateTopic(s.Context(), &sns.CreateTopicInput{Name: aws.String(s.name + "-" + id)})
		check(s, err)
		s.Values[id] = *made.TopicArn
	})
}

// queues makes first those of the dead, of which the others speak.
func (s *stack) queues() {
	s.Helper()
	for _, dead := range []bool{true, false} {
		s.each("AWS::SQS::Queue", func(id string, p template.Object) {
			if (p["RedrivePolicy"] == nil) == dead {
				s.queue(id, p)
			}
		})
	}
}

func (s *stack) queue(id string, p template.Object) {
	s.Helper()
	attributes := map[string]string{}
	for _, name := range []string{"VisibilityTimeout", "MessageRetentionPeriod", "RedrivePolicy"} {
		if p[name] != nil {
			attributes[name] = s.text(p[name])
		}
	}
	made, err := s.sqs.CreateQueue(s.Context(), &sqs.CreateQueueInput{QueueName: aws.String(s.name + "-" + id), Attributes: attributes})
	check(s, err)
	s.Values[id] = *made.QueueUrl
	a, err := s.sqs.GetQueueAttributes(s.Context(), &sqs.GetQueueAttributesInput{QueueUrl: made.QueueUrl, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	check(s, err)
	s.Values[id+".Arn"] = a.Attributes["QueueArn"]
}

// text is a property as an attribute: an object becomes JSON.
func (s *stack) text(v any) string {
	s.Helper()
	r, err := s.Resolve(v)
	check(s, err)
	if o, ok := r.(template.Object); ok {
		text, err := json.Marshal(o)
		check(s, err)
		return string(text)
	}
	return fmt.Sprint(r)
}

// subscriptions makes those of queues, and for the tests to look at one to the
// topics whose subscribers are functions or others.
func (s *stack) subscriptions() {
	s.Helper()
	s.each("AWS::SNS::Subscription", func(_ string, p template.Object) {
		if p["Protocol"] != "sqs" {
			return
		}
		s.subscribe(s.text(p["TopicArn"]), s.text(p["Endpoint"]), map[string]string{
			"FilterPolicy": s.text(p["FilterPolicy"]), "RawMessageDelivery": s.text(p["RawMessageDelivery"]),
		})
	})
	for _, topic := range []string{"EventsTopic", "FeedbackTopic"} {
		s.queue(topic+"Look", template.Object{})
		s.subscribe(s.Values[topic], s.Values[topic+"Look.Arn"], nil)
	}
}

func (s *stack) subscribe(topic, queue string, attributes map[string]string) {
	s.Helper()
	_, err := s.sns.Subscribe(s.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: &queue, Attributes: attributes})
	check(s, err)
}

// functions opens each with the environment that the template gives it.
func (s *stack) functions() {
	s.Helper()
	all, err := s.Functions()
	check(s, err)
	for _, f := range all {
		open := func(ports ...port.Opener) *function.Function {
			opened, err := function.New(func(name string) string {
				for _, from := range []map[string]string{f.Environment, s.aws} {
					if v, ok := from[name]; ok {
						return v
					}
				}
				return os.Getenv(name)
			}, ports...)
			check(s, err)
			opened.Ports.Log = boottest.Log(s)
			opened.Ports.Now = func() time.Time { return time.Now().Add(s.ahead) }
			check(s, opened.Begin(context.WithoutCancel(s.Context())))
			return opened
		}
		switch f.Name {
		case "relay":
			s.relay = open(snstopics.Open)
		case "email":
			s.email = open(dynamotable.Open, ssmkey.Open, sqsqueue.Open, sesmail.Open)
		case "sms":
			s.sms = open(dynamotable.Open, ssmkey.Open, sqsqueue.Open, smstext.Open)
		case "feedback":
			s.feedback = open(dynamotable.Open)
		case "upload":
			s.upload = open(dynamotable.Open, s3blobs.Open, ssmkey.Open)
		}
	}
}
