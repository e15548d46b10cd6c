// Package fanout tests the path of notices and events as it is in the cloud:
// the topics, queues, filters and dead-letter queues of template.yaml, made on
// stand-ins for AWS, with the real handlers of the functions between them.
package fanout

import (
	"context"
	"fmt"
	"io"
	"maps"
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

	"ferry/infra/messaging"
	"ferry/infra/template"
	"ferry/shared/auth"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"
	"ferry/shared/boot/port/sesmail"
	"ferry/shared/boot/port/smstext"
	"ferry/shared/boot/port/snstopics"
	"ferry/shared/boot/port/sqsqueue"
	"ferry/shared/table/dynamo"
)

// stack is what the template says, on the stand-ins.
type stack struct {
	*testing.T
	*messaging.Messaging
	name    string
	ann     string        // who gets mail
	phone   string        // who gets text messages
	ahead   time.Duration // of the functions' clocks
	aws     map[string]string
	streams *dynamodbstreams.Client

	relay, email, sms, feedback, upload *lambda.Function
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
		ann: "ann@" + name + ".example.com", phone: fmt.Sprintf("+39333%07d", run), streams: dynamodbstreams.NewFromConfig(cfg),
	}
	values := map[string]string{
		"AWS::StackName": s.name, "AWS::Region": cfg.Region, "AWS::Partition": "aws", "AWS::AccountId": "123456789012",
		"PublicUrl": "https://files.example.com/v1", "SenderAddress": s.name + "@example.com",
	}
	maps.Copy(values, parameters)
	s.Messaging, err = messaging.New(t.Context(), cfg, name, template.Stack{Template: tpl, Values: values})
	check(t, err)
	s.data(cfg)
	s.lookAt("EventsTopic", "FeedbackTopic")
	s.functions()
	check(t, auth.NewUsers(s.upload.Ports.Table, time.Now).Add(t.Context(), auth.User{Name: "alice", State: auth.Active}))
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// data makes the table, the buckets and the key.
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
}

// verify lets SES send from the stack's sender.
func (s *stack) verify() {
	s.Helper()
	check(s, s.Verify(s.Context()))
}

// lookAt subscribes a queue for the tests to look at to topics whose
// subscribers are functions or others.
func (s *stack) lookAt(topics ...string) {
	s.Helper()
	for _, topic := range topics {
		check(s, s.Queue(s.Context(), topic+"Look", template.Object{}))
		check(s, s.Subscribe(s.Context(), s.Values[topic], s.Values[topic+"Look.Arn"], nil))
	}
}

// functions opens each with the environment that the template gives it.
func (s *stack) functions() {
	s.Helper()
	all, err := s.Functions()
	check(s, err)
	for _, f := range all {
		open := func(ports ...lambda.Opener) *lambda.Function {
			opened, err := lambda.New(func(name string) string {
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
			s.email = open(dynamotable.Open, lambda.LinkKey, sqsqueue.Open, sesmail.Open)
		case "sms":
			s.sms = open(dynamotable.Open, lambda.LinkKey, sqsqueue.Open, smstext.Open)
		case "feedback":
			s.feedback = open(dynamotable.Open)
		case "upload":
			s.upload = open(dynamotable.Open, s3blobs.Open, lambda.LinkKey)
		}
	}
}
