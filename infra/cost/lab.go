package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"ferry/infra/lambdahost"
	"ferry/infra/template"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"
	"ferry/shared/boot/port/sesmail"
	"ferry/shared/boot/port/smstext"
	"ferry/shared/boot/port/snstopics"
	"ferry/shared/boot/port/sqsqueue"
	"ferry/shared/table"
	"ferry/shared/table/dynamo"

	"ferry/shared/auth"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/notify"

	"ferry/shared/api"
	"ferry/shared/boot/local"
)

// errNoStandIns is returned where there is nothing to count with.
var errNoStandIns = errors.New("there are no stand-ins for AWS: go run ./infra/awslocal -- go run ./infra/cost -count")

// lab is a stack on the stand-ins for AWS: the functions' own handlers and
// backends, with a meter between them and AWS. raw is the same data without it.
type lab struct {
	*meter
	ports, raw *api.Ports
	mux        *http.ServeMux
	ahead      time.Duration // of all clocks
	seen       map[table.Key]bool
}

func newLab(ctx context.Context, t template.Template) (*lab, error) {
	if os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") == "" {
		return nil, errNoStandIns
	}
	name := "cost-" + strings.ToLower(rand.Text()[:8])
	environment, err := resources(ctx, t, name)
	if err != nil {
		return nil, err
	}
	key, err := auth.NewLinkKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	l := &lab{seen: map[table.Key]bool{}, meter: &meter{services: map[string]bool{}, tableName: name, next: http.DefaultTransport.(*http.Transport).Clone()}}
	for _, service := range []string{"DYNAMODB", "S3", "SNS", "SQS", "SESV2"} {
		u, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_" + service))
		if err != nil {
			return nil, fmt.Errorf("the stand-in for %s: %w", service, err)
		}
		l.services[u.Host] = true
	}
	if l.raw, err = l.open(environment, key, http.DefaultTransport, io.Discard); err != nil {
		return nil, err
	}
	if l.ports, err = l.open(environment, key, l.meter, l.meter); err != nil {
		return nil, err
	}
	l.route()
	return l, nil
}

// resources makes what the functions use, and returns their environment.
func resources(ctx context.Context, t template.Template, name string) (map[string]string, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if err := dynamo.CreateTable(ctx, dynamodb.NewFromConfig(cfg), name); err != nil {
		return nil, err
	}
	values := map[string]string{
		"AWS::StackName": name, "AWS::Region": cfg.Region, "AWS::Partition": "aws", "AWS::AccountId": "123456789012", "AWS::URLSuffix": "amazonaws.com",
		"PublicUrl": "https://files.example.com/v1", "SenderAddress": "ferry@example.com", "SmsSending": "on",
		"Table": name, "FilesBucket": name + "-files", "BackupBucket": name + "-backup", "MailEvents": name + "-mail",
	}
	buckets := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	for _, id := range []string{"FilesBucket", "BackupBucket"} {
		if _, err := buckets.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(values[id])}); err != nil {
			return nil, fmt.Errorf("making a bucket: %w", err)
		}
	}
	topics := sns.NewFromConfig(cfg)
	for _, id := range []string{"NoticesTopic", "EventsTopic"} {
		made, err := topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: aws.String(name + "-" + id)})
		if err != nil {
			return nil, fmt.Errorf("making a topic: %w", err)
		}
		values[id] = aws.ToString(made.TopicArn)
	}
	for _, id := range []string{"MailQueue", "SmsQueue"} { // what goes wrong would be delayed there: nothing does
		values[id] = "https://sqs.example.com/" + id
	}
	if err := sender(ctx, sesv2.NewFromConfig(cfg), values); err != nil {
		return nil, err
	}
	functions, err := template.Stack{Template: t, Values: values}.Functions()
	if err != nil {
		return nil, err
	}
	environment := map[string]string{}
	for _, f := range functions {
		for k, v := range f.Environment {
			environment[k] = v
		}
	}
	return environment, nil
}

// sender makes what mail is sent with.
func sender(ctx context.Context, ses *sesv2.Client, values map[string]string) error {
	_, err := ses.CreateConfigurationSet(ctx, &sesv2.CreateConfigurationSetInput{ConfigurationSetName: aws.String(values["MailEvents"])})
	if err != nil {
		return fmt.Errorf("making a configuration set: %w", err)
	}
	address := aws.String(values["SenderAddress"])
	if _, err := ses.GetEmailIdentity(ctx, &sesv2.GetEmailIdentityInput{EmailIdentity: address}); err == nil {
		return nil
	}
	if _, err := ses.CreateEmailIdentity(ctx, &sesv2.CreateEmailIdentityInput{EmailIdentity: address}); err != nil {
		return fmt.Errorf("making a sender of mail: %w", err)
	}
	return nil
}

// open opens all ports as a function does, on a transport.
func (l *lab) open(environment map[string]string, key string, transport http.RoundTripper, log io.Writer) (*api.Ports, error) {
	getenv := func(name string) string {
		if v, ok := environment[name]; ok {
			return v
		}
		return os.Getenv(name)
	}
	set, err := lambda.ReadSettings(getenv)
	if err != nil {
		return nil, err
	}
	p, err := lambda.Base(set)
	if err != nil {
		return nil, err
	}
	cloud, err := lambda.LambdaCloud(getenv)
	if err != nil {
		return nil, err
	}
	cloud.Config.HTTPClient = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if err := cloud.Open(p, dynamotable.Open, s3blobs.Open, snstopics.Open, sqsqueue.Open, sesmail.Open, smstext.Open); err != nil {
		return nil, err
	}
	p.Now = func() time.Time { return time.Now().Add(l.ahead) }
	p.Log = slog.New(slog.NewJSONHandler(log, nil))
	p.Key, err = auth.ParseLinkKey(key)
	return p, err
}

// route makes the API.
func (l *lab) route() {
	l.mux = http.NewServeMux()
	for _, e := range local.Endpoints() {
		handle := lambda.Gateway(lambda.With(l.ports).Handler(e), l.ports)
		for _, r := range e.Routes {
			resource := api.Prefix + r.Path
			l.mux.HandleFunc(r.Method+" "+resource, func(w http.ResponseWriter, r *http.Request) { l.forward(w, r, e.Name, resource, handle) })
		}
		if len(e.Routes) == 0 {
			l.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { l.forward(w, r, e.Name, "$default", handle) })
		}
	}
}

// forward is what the gateway does with a request.
func (l *lab) forward(w http.ResponseWriter, r *http.Request, name, resource string, handle lambda.EventHandler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	event := lambdahost.Event(r, resource, body)
	var answer events.APIGatewayProxyResponse
	err = l.as(name, func() error {
		answer, err = handle(r.Context(), event)
		return err
	})
	text := []byte(answer.Body)
	if err == nil && answer.IsBase64Encoded {
		text, err = base64.StdEncoding.DecodeString(answer.Body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	l.add(requests, units(len(body)+len(text), 512<<10))
	l.add(outBytes, float64(len(text)+headerBytes))
	l.add(logBytes, accessLogBytes)
	for field, values := range answer.MultiValueHeaders {
		w.Header()[field] = values
	}
	w.WriteHeader(answer.StatusCode)
	w.Write(text) // who asks here stays
}

// settled passes on what is new in the table until nothing is: the stream to
// relay, each record by itself, which is the dearest way; notices by their
// queue to email and sms; and what SES tells of a mail to feedback.
func (l *lab) settled(ctx context.Context) error {
	for {
		fresh, err := l.fresh(ctx)
		if err != nil || len(fresh) == 0 {
			return err
		}
		for _, r := range fresh {
			if err := l.pass(ctx, r); err != nil {
				return err
			}
		}
	}
}

// fresh are the records that the stream's filter lets through, each once.
func (l *lab) fresh(ctx context.Context) (found []notify.StreamRecord, err error) {
	err = l.raw.Table.Scan(ctx, func(item table.Item) error {
		outbox := strings.HasPrefix(item.Key.PK, notify.OutboxPrefix)
		if l.seen[item.Key] || !outbox && !strings.HasPrefix(item.Key.PK, notify.EventPrefix) {
			return nil
		}
		l.seen[item.Key] = true
		var v struct{ Channel, Type, Body string }
		err := item.Decode(&v)
		found = append(found, notify.StreamRecord{Key: item.Key, Channel: v.Channel, Type: v.Type, Body: v.Body})
		return err
	})
	return found, err
}

func (l *lab) pass(ctx context.Context, r notify.StreamRecord) error {
	image := map[string]events.DynamoDBAttributeValue{}
	for name, v := range map[string]string{"channel": r.Channel, "type": r.Type, "body": r.Body} {
		image[name] = events.NewStringAttribute(v)
	}
	keys := map[string]events.DynamoDBAttributeValue{"pk": events.NewStringAttribute(r.Key.PK), "sk": events.NewStringAttribute(r.Key.SK)}
	e := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{
		EventName: string(events.DynamoDBOperationTypeInsert), Change: events.DynamoDBStreamRecord{Keys: keys, NewImage: image},
	}}}
	err := l.as("relay", func() error {
		again, err := worker.RelayerHandler(lambda.With(l.ports))(ctx, e)
		if err == nil && len(again.BatchItemFailures) > 0 {
			err = errors.New("a record was not passed on")
		}
		return err
	})
	if err != nil || !strings.HasPrefix(r.Key.PK, notify.OutboxPrefix) {
		return err
	}
	return l.deliver(ctx, r)
}

// deliver brings a notice by its queue: SNS sends it there, Lambda receives and
// removes it, each by a request of its own.
func (l *lab) deliver(ctx context.Context, r notify.StreamRecord) error {
	for _, call := range []string{"SendMessage by SNS", "ReceiveMessage by Lambda", "DeleteMessage by Lambda"} {
		l.beside("SQS "+call, queueCalls)
	}
	name := "email"
	if r.Channel == string(notify.SMS) {
		name = "sms"
	}
	err := l.as(name, func() error {
		e := events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", ReceiptHandle: "1", Body: notify.Pointer(r.Key, r.Channel).Body}}}
		again, err := worker.CourierHandler(lambda.With(l.ports))(ctx, e)
		if err == nil && len(again.BatchItemFailures) > 0 {
			err = errors.New("a notice was not sent")
		}
		return err
	})
	if err != nil || name == "sms" {
		return err
	}
	told := fmt.Sprintf(`{"eventType":"Delivery","mail":{"tags":{"notice":[%q]}}}`, r.Key.SK)
	event, err := json.Marshal(events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{Message: told}}}})
	if err != nil {
		return fmt.Errorf("making an event of SES: %w", err)
	}
	l.beside("SNS Publish by SES", publishes)
	return l.as("feedback", func() error { return worker.FeedbackHandler(lambda.With(l.ports))(ctx, event) })
}

// sweep runs the sweep once.
func (l *lab) sweep(ctx context.Context) error {
	return l.as("sweep", func() error {
		r, err := worker.SweeperHandler(lambda.With(l.ports))(ctx)
		if err == nil && !r.Complete {
			err = errors.New("the sweep did not come to its end")
		}
		return err
	})
}
