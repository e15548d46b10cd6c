package stack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"ferry/shared/blob"
	"ferry/shared/blob/s3"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/notify/mail/ses"
	ferrysns "ferry/shared/notify/sns"
	ferrysqs "ferry/shared/notify/sqs"
	"ferry/shared/service"
	"ferry/shared/table/dynamo"
)

// uses are the calls that were made, as permissions of AWS: the action, and the
// partition of the table or the resource.
type uses struct {
	mu  sync.Mutex
	all map[string]bool
}

func (u *uses) note(resource string, actions ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range actions {
		u.all[a+" "+resource] = true
	}
}

func (u *uses) sorted() []string { return slices.Sorted(maps.Keys(u.all)) }

// open gives the stage its table and buckets on the stand-ins, and the ports that the
// function's main names, with a network that notes their calls.
func (s *stage) open(name string) {
	s.Helper()
	cfg, err := config.LoadDefaultConfig(s.Context())
	s.check(err)
	d, err := boottest.Make(s.Context(), "stack-"+name)
	s.check(err)
	maps.Copy(d.Environment, map[string]string{
		"FERRY_NOTICES_TOPIC": noticesTopic, "FERRY_EVENTS_TOPIC": eventsTopic, "FERRY_QUEUE": queueURL,
		"FERRY_MAIL_FROM": mailFrom, "FERRY_MAIL_EVENTS": mailEvents, "FERRY_KEY_PARAMETER": keyParameter, "FERRY_MOVER": mover,
	})
	open := func(cfg aws.Config, p *service.Ports, ports ...lambda.Opener) {
		c := &lambda.Cloud{Config: cfg, Getenv: d.Getenv}
		s.check(c.Open(p, ports...))
		s.check(c.Begin(s.Context()))
	}
	open(cfg, &s.real.Ports, lambda.Table(dynamo.Open), lambda.Blobs(s3.Open))
	s.real.Parts = sender{s.real.Parts}
	s.real, err = boottest.Fill(s.Context(), s.real)
	s.check(err)

	s.network = &network{
		uses:   &uses{all: map[string]bool{}},
		next:   cfg.HTTPClient,
		stage:  s,
		faults: map[string]failure{},
	}
	cfg.HTTPClient = s.network
	cfg.APIOptions = append(cfg.APIOptions, s.network.watch)
	cfg.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	}
	for _, name := range readMain(s.T, name).ports() {
		open(cfg, &s.ports.Ports, openers(s.worker)[name])
	}
	s.keys = &lambda.Cloud{Config: cfg, Getenv: os.Getenv}
}

// openers returns the opener of each port by its name; a worker's ports open into w.
func openers(w *worker.Worker) map[string]lambda.Opener {
	return map[string]lambda.Opener{
		"Table": lambda.Table(dynamo.Open), "Blobs": lambda.Blobs(s3.Open), "LinkKey": lambda.LinkKey, "Versions": lambda.KeyVersions,
		"Mover":  lambda.Mover,
		"Topics": w.Opener(worker.Backends{Topics: ferrysns.OpenTopics}), "Queue": w.Opener(worker.Backends{Queue: ferrysqs.Open}),
		"Mail": w.Opener(worker.Backends{Courier: worker.Mail(ses.Open)}), "SMS": w.Opener(worker.Backends{Courier: worker.SMS(ferrysns.OpenText)}),
	}
}

// sender sends parts by their signed requests, as clients do.
type sender struct{ blob.Parts }

func (s sender) Upload(a blob.Area, key, id string, l blob.Layout) blob.Upload {
	return sendingUpload{s.Parts.Upload(a, key, id, l)}
}

type sendingUpload struct{ blob.Upload }

func (u sendingUpload) Write(ctx context.Context, number int, r io.Reader, sum *uint64) (blob.Part, error) {
	signed, err := u.Sign(ctx, number, sum, time.Hour)
	if err != nil {
		return blob.Part{}, err
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return blob.Part{}, err
	}
	request, err := http.NewRequestWithContext(ctx, signed.Method, signed.URL, bytes.NewReader(body))
	if err != nil {
		return blob.Part{}, err
	}
	for name, v := range signed.Header {
		request.Header.Set(name, v)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return blob.Part{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return blob.Part{}, fmt.Errorf("sending a part: %s", answer.Status)
	}
	return blob.Part{Number: number, Size: int64(len(body))}, nil
}

// watch notes each call of the SDK before it is signed and sent.
func (u *uses) watch(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("NotePermissions",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			operation := awsmiddleware.GetOperationName(ctx)
			if !u.noteTable(in.Parameters) && !u.noteBucket(operation, in.Parameters) && !u.noteMessage(in.Parameters) {
				u.note("an unknown call", operation)
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.After)
}

type item = map[string]dynamotypes.AttributeValue

func (u *uses) noteTable(call any) (known bool) {
	key := func(action string, values ...item) {
		for _, v := range values {
			pk, _ := v["pk"].(*dynamotypes.AttributeValueMemberS)
			partition, _, named := strings.Cut(pk.Value, "#")
			if named {
				partition += "#*"
			}
			u.note(partition, "dynamodb:"+action)
		}
	}
	switch c := call.(type) {
	case *dynamodb.GetItemInput:
		key("GetItem", c.Key)
	case *dynamodb.BatchGetItemInput:
		for _, r := range c.RequestItems {
			key("BatchGetItem", r.Keys...)
		}
	case *dynamodb.QueryInput:
		key("Query", item{"pk": c.ExpressionAttributeValues[":pk"]})
	case *dynamodb.PutItemInput:
		key("PutItem", c.Item)
	case *dynamodb.UpdateItemInput:
		key("UpdateItem", c.Key)
	case *dynamodb.DeleteItemInput:
		key("DeleteItem", c.Key)
	case *dynamodb.TransactWriteItemsInput:
		for _, w := range c.TransactItems {
			switch {
			case w.Put != nil:
				key("PutItem", w.Put.Item)
			case w.Update != nil:
				key("UpdateItem", w.Update.Key)
			case w.Delete != nil:
				key("DeleteItem", w.Delete.Key)
			case w.ConditionCheck != nil:
				key("ConditionCheckItem", w.ConditionCheck.Key)
			}
		}
	default:
		return false
	}
	return true
}

func (u *uses) noteBucket(operation string, call any) (known bool) {
	action, known := map[string]string{
		"PutObject": "PutObject", "CreateMultipartUpload": "PutObject", "UploadPart": "PutObject", "CompleteMultipartUpload": "PutObject",
		"CopyObject": "PutObject", "UploadPartCopy": "PutObject", "GetObject": "GetObject", "HeadObject": "GetObject",
		"DeleteObject": "DeleteObject", "AbortMultipartUpload": "AbortMultipartUpload", "ListParts": "ListMultipartUploadParts",
		"ListObjectsV2": "ListBucket", "ListMultipartUploads": "ListBucketMultipartUploads",
	}[operation]
	if !known {
		return false
	}
	field := func(name string) string {
		if f := reflect.ValueOf(call).Elem().FieldByName(name); f.IsValid() && !f.IsNil() {
			return f.Elem().String()
		}
		return ""
	}
	if from, _, copies := strings.Cut(field("CopySource"), "/"); copies {
		u.note(areaOf(from)+"/*", "s3:GetObject")
	}
	resource := areaOf(field("Bucket"))
	switch {
	case strings.HasPrefix(operation, "ListObjects"), operation == "ListMultipartUploads":
	case strings.HasPrefix(field("Key"), files.Entries) && action != "GetObject" && action != "DeleteObject":
		resource += "/" + files.Entries + "*" // objects of files in bundles have a folder of their own
	default:
		resource += "/*"
	}
	u.note(resource, "s3:"+action)
	return true
}

// noteMessage recognises a resource by its name in the function's environment.
func (u *uses) noteMessage(call any) (known bool) {
	one := func(resource, action string, name *string, want string) bool {
		if aws.ToString(name) == want {
			u.note(resource, action)
		}
		return aws.ToString(name) == want
	}
	switch c := call.(type) {
	case *sns.PublishBatchInput:
		return one("!Ref NoticesTopic", "sns:Publish", c.TopicArn, noticesTopic) ||
			one("!Ref EventsTopic", "sns:Publish", c.TopicArn, eventsTopic)
	case *sns.PublishInput:
		if c.PhoneNumber != nil {
			u.note("number", "sns:Publish")
		}
		return c.PhoneNumber != nil
	case *sqs.ChangeMessageVisibilityInput:
		return one("queue", "sqs:ChangeMessageVisibility", c.QueueUrl, queueURL)
	case *sesv2.SendEmailInput:
		return one("identity", "ses:SendEmail", c.FromEmailAddress, mailFrom) &&
			one("configuration-set", "ses:SendEmail", c.ConfigurationSetName, mailEvents)
	}
	return false
}

// areaOf returns the template's name of a bucket.
func areaOf(name string) string {
	if strings.HasSuffix(name, "-backup") {
		return "BackupBucket"
	}
	return "FilesBucket"
}
