package stack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/port"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"
	"ferry/shared/endpoint"
	"ferry/shared/table"
	"ferry/shared/table/dynamo"
)

// TestEachCallOfTheSDKIsAllowed drives the functions as the test of their
// permissions does, but on the real backends, and notes what the SDK sends: a
// call that the function's role does not allow would be refused.
func TestEachCallOfTheSDKIsAllowed(t *testing.T) {
	t.Parallel()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/stack")
	}
	tpl := read(t)
	for name, f := range tpl.functions() {
		if !slices.Contains(readMain(t, name).ports(), "dynamotable") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, name)
			sent := s.onAWS(name)
			scenarios()[name](s)
			allowed := granted(t, tpl, f)
			for _, call := range sent.sorted() {
				if !slices.Contains(allowed, call) {
					t.Errorf("%s is sent and not allowed", call)
				}
			}
			if len(sent.sorted()) == 0 {
				t.Error("nothing was sent")
			}
		})
	}
}

// onAWS moves the stage's data to the stand-ins, and returns what the function
// sends there.
func (s *stage) onAWS(name string) *uses {
	s.Helper()
	cfg, err := config.LoadDefaultConfig(s.Context())
	s.check(err)
	prefix := "stack-" + name
	names := map[string]string{"FERRY_TABLE": prefix, "FERRY_FILES_BUCKET": prefix + "-files", "FERRY_BACKUP_BUCKET": prefix + "-backup"}
	s.check(dynamo.CreateTable(s.Context(), dynamodb.NewFromConfig(cfg), prefix))
	client := awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.UsePathStyle = true })
	for _, variable := range []string{"FERRY_FILES_BUCKET", "FERRY_BACKUP_BUCKET"} {
		bucket := names[variable]
		_, err := client.CreateBucket(s.Context(), &awss3.CreateBucketInput{Bucket: &bucket})
		s.check(err)
	}
	open := func(cfg aws.Config, p *endpoint.Ports, ports ...port.Opener) {
		c := &port.Cloud{Config: cfg, Getenv: func(variable string) string {
			if v, ok := names[variable]; ok {
				return v
			}
			return os.Getenv(variable)
		}}
		s.check(c.Open(p, ports...))
	}
	open(cfg, s.real, dynamotable.Open, s3blobs.Open)
	s.real.Parts = sender{s.real.Parts}
	boottest.Seed(s, s.real)

	sent := newUses()
	cfg.APIOptions = append(cfg.APIOptions, sent.watch)
	if s.ports.Table != nil {
		open(cfg, s.ports, dynamotable.Open)
	}
	if s.ports.Blobs != nil {
		open(cfg, s.ports, s3blobs.Open)
		s.ports.Blobs = interrupted{s.ports.Blobs, s.others}
	}
	return sent
}

// interrupted is a store where others come in between, as in the other stage.
type interrupted struct {
	blob.Store
	*interlopers
}

func (i interrupted) Copy(ctx context.Context, from blob.Area, fromKey string, to blob.Area, toKey string) error {
	i.once(&i.beforeCopy)
	err := i.Store.Copy(ctx, from, fromKey, to, toKey)
	i.once(&i.afterCopy)
	return err
}

// sender sends parts to where they are signed for, as clients do.
type sender struct{ blob.Parts }

func (s sender) WritePart(ctx context.Context, area blob.Area, key, upload string, l blob.Layout, number int, r io.Reader, sum *uint64) (blob.Part, error) {
	signed, err := s.SignPart(ctx, area, key, upload, l, number, sum, time.Hour)
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
			if !u.noteTable(in.Parameters) && !u.noteBucket(in.Parameters) {
				u.note("an unknown call", awsmiddleware.GetOperationName(ctx))
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.After)
}

type item = map[string]dynamotypes.AttributeValue

func (u *uses) noteTable(call any) (known bool) {
	key := func(action string, values ...item) {
		for _, v := range values {
			pk, _ := v["pk"].(*dynamotypes.AttributeValueMemberS)
			recordedTable{uses: u}.key(action, table.Key{PK: pk.Value})
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

func (u *uses) noteBucket(call any) (known bool) {
	object := func(bucket *string, action string) { u.note(areaOf(*bucket)+"/*", "s3:"+action) }
	switch c := call.(type) {
	case *awss3.PutObjectInput:
		object(c.Bucket, "PutObject")
	case *awss3.CreateMultipartUploadInput:
		object(c.Bucket, "PutObject")
	case *awss3.UploadPartInput:
		object(c.Bucket, "PutObject")
	case *awss3.CompleteMultipartUploadInput:
		object(c.Bucket, "PutObject")
	case *awss3.CopyObjectInput:
		from, _, _ := strings.Cut(*c.CopySource, "/")
		object(&from, "GetObject")
		object(c.Bucket, "PutObject")
	case *awss3.UploadPartCopyInput:
		from, _, _ := strings.Cut(*c.CopySource, "/")
		object(&from, "GetObject")
		object(c.Bucket, "PutObject")
	case *awss3.GetObjectInput:
		object(c.Bucket, "GetObject")
	case *awss3.HeadObjectInput:
		object(c.Bucket, "GetObject")
	case *awss3.DeleteObjectInput:
		object(c.Bucket, "DeleteObject")
	case *awss3.AbortMultipartUploadInput:
		object(c.Bucket, "AbortMultipartUpload")
	case *awss3.ListPartsInput:
		object(c.Bucket, "ListMultipartUploadParts")
	case *awss3.ListObjectsV2Input:
		u.note(areaOf(*c.Bucket), "s3:ListBucket")
	case *awss3.ListMultipartUploadsInput:
		u.note(areaOf(*c.Bucket), "s3:ListBucketMultipartUploads")
	default:
		return false
	}
	return true
}

// areaOf is the template's name of a bucket.
func areaOf(name string) string {
	if strings.HasSuffix(name, "-backup") {
		return bucket(blob.Backup)
	}
	return bucket(blob.Files)
}
