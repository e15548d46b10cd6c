package stack

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"ferry/shared/blob"
	"ferry/shared/table"

	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/notify/sms"
)

// uses is what ports were used for, as permissions of AWS: the action, and the
// partition of the table or the resource.
type uses struct {
	mu  sync.Mutex
	all map[string]bool
}

func newUses() *uses { return &uses{all: map[string]bool{}} }

func (u *uses) note(resource string, actions ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range actions {
		u.all[a+" "+resource] = true
	}
}

func (u *uses) sorted() []string { return slices.Sorted(maps.Keys(u.all)) }

// recordedTable is a table that notes what it is used for on DynamoDB. The
// real one is not embedded: a method that is new to the port must be added here.
type recordedTable struct {
	real table.Table
	*uses
}

var _ table.Table = recordedTable{}

func (r recordedTable) key(action string, keys ...table.Key) {
	for _, k := range keys {
		partition, _, named := strings.Cut(k.PK, "#")
		if named {
			partition += "#*"
		}
		r.note(partition, "dynamodb:"+action)
	}
}

func (r recordedTable) Get(ctx context.Context, key table.Key, into any) error {
	r.key("GetItem", key)
	return r.real.Get(ctx, key, into)
}

func (r recordedTable) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	r.key("BatchGetItem", keys...)
	return r.real.GetMany(ctx, keys...)
}

func (r recordedTable) Query(ctx context.Context, q table.Query) (table.Page, error) {
	r.key("Query", table.Key{PK: q.PK})
	return r.real.Query(ctx, q)
}

func (r recordedTable) Scan(ctx context.Context, yield func(table.Item) error) error {
	r.note("!GetAtt Table.Arn", "dynamodb:Scan")
	return r.real.Scan(ctx, yield)
}

func (r recordedTable) Write(ctx context.Context, ops ...table.Op) error {
	for _, op := range ops {
		r.op(op)
	}
	return r.real.Write(ctx, ops...)
}

func (r recordedTable) WriteThenQuery(ctx context.Context, q table.Query, ops ...table.Op) (table.Page, error) {
	r.key("Query", table.Key{PK: q.PK})
	for _, op := range ops {
		r.op(op)
	}
	return r.real.WriteThenQuery(ctx, q, ops...)
}

func (r recordedTable) Update(ctx context.Context, op table.Op, into any) error {
	r.op(op)
	return r.real.Update(ctx, op, into)
}

// op notes an operation. One of a transaction needs the same as one by itself.
func (r recordedTable) op(op table.Op) {
	action := map[table.Kind]string{
		table.KindPut: "PutItem", table.KindUpdate: "UpdateItem", table.KindDelete: "DeleteItem", table.KindCheck: "ConditionCheckItem",
	}[op.Kind]
	r.key(action, op.Key)
}

// recordedTopics are topics that note what they are used for on SNS, where a
// batch needs the same as one message.
type recordedTopics struct {
	real notify.Topics
	*uses
}

func (r recordedTopics) Publish(ctx context.Context, to notify.Topic, messages []notify.TopicMessage) []error {
	r.note("!Ref "+map[notify.Topic]string{notify.NoticesTopic: "NoticesTopic", notify.EventsTopic: "EventsTopic"}[to], "sns:Publish")
	return r.real.Publish(ctx, to, messages)
}

type recordedQueue struct {
	real notify.Queue
	*uses
}

func (r recordedQueue) Delay(ctx context.Context, receipt string, wait time.Duration) error {
	r.note("queue", "sqs:ChangeMessageVisibility")
	return r.real.Delay(ctx, receipt, wait)
}

type recordedMail struct {
	mail.Sender
	*uses
}

// Send needs a permission for the sender's identity and one for the configuration set.
func (r recordedMail) Send(ctx context.Context, m mail.Message) (string, error) {
	r.note("identity", "ses:SendEmail")
	r.note("configuration-set", "ses:SendEmail")
	return r.Sender.Send(ctx, m)
}

type recordedSMS struct {
	sms.Sender
	*uses
}

func (r recordedSMS) Send(ctx context.Context, m sms.Message) (string, error) {
	r.note("number", "sns:Publish")
	return r.Sender.Send(ctx, m)
}

// recordedKeys is where the link key is written.
type recordedKeys struct{ *uses }

func (r recordedKeys) PutParameter(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error) {
	r.note("link-key", "ssm:PutParameter")
	return &ssm.PutParameterOutput{}, nil
}

// interlopers are callers who come in between, each once.
type interlopers struct{ beforeCopy, afterCopy func() }

func (interlopers) once(f *func()) {
	if g := *f; g != nil {
		*f = nil
		g()
	}
}

// recordedBlobs is a store that notes what it is used for on S3.
type recordedBlobs struct {
	real blob.Store
	*uses
	*interlopers
}

var _ blob.Store = recordedBlobs{}

func bucket(area blob.Area) string {
	return map[blob.Area]string{blob.Files: "FilesBucket", blob.Backup: "BackupBucket"}[area]
}

// Create is a PutObject: the template's MaxBody lets no body in that is sent in
// parts. What went wrong is looked into (HeadObject, which is GetObject) and
// cleaned up.
func (r recordedBlobs) Create(ctx context.Context, area blob.Area, key string, b io.Reader, size int64) (blob.Written, error) {
	r.note(bucket(area)+"/*", "s3:PutObject", "s3:GetObject", "s3:DeleteObject")
	return r.real.Create(ctx, area, key, b, size)
}

// Open learns that an object is missing only if it may list the bucket.
func (r recordedBlobs) Open(ctx context.Context, area blob.Area, key string) (io.ReadSeekCloser, error) {
	r.note(bucket(area)+"/*", "s3:GetObject")
	r.note(bucket(area), "s3:ListBucket")
	return r.real.Open(ctx, area, key)
}

// Copy makes a large object of parts, and learns that one is missing like Open.
func (r recordedBlobs) Copy(ctx context.Context, from blob.Area, fromKey string, to blob.Area, toKey string) error {
	r.note(bucket(from)+"/*", "s3:GetObject")
	r.note(bucket(from), "s3:ListBucket")
	r.note(bucket(to)+"/*", "s3:PutObject", "s3:AbortMultipartUpload")
	r.once(&r.beforeCopy)
	err := r.real.Copy(ctx, from, fromKey, to, toKey)
	r.once(&r.afterCopy)
	return err
}

func (r recordedBlobs) Delete(ctx context.Context, area blob.Area, key string) error {
	r.note(bucket(area)+"/*", "s3:DeleteObject")
	return r.real.Delete(ctx, area, key)
}

func (r recordedBlobs) List(ctx context.Context, area blob.Area, after string, limit int) ([]blob.Object, error) {
	r.note(bucket(area), "s3:ListBucket")
	return r.real.List(ctx, area, after, limit)
}

// SignGet signs with the function's own permission. A disk cannot.
func (r recordedBlobs) SignGet(_ context.Context, area blob.Area, key string, _ blob.Signed) (string, error) {
	r.note(bucket(area)+"/*", "s3:GetObject")
	return "https://" + bucket(area) + ".example/" + key, nil
}

func (r recordedBlobs) Sweep(ctx context.Context, before time.Time) (int, error) {
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		r.note(bucket(area), "s3:ListBucketMultipartUploads")
		r.note(bucket(area)+"/*", "s3:AbortMultipartUpload")
	}
	return r.real.Sweep(ctx, before)
}

// recordedParts are sessions of parts that note what they are used for on S3.
// Through a disk parts pass; to S3 they are signed by the function's own
// permission.
type recordedParts struct {
	blob.Parts
	*uses
}

func (r recordedParts) note(actions ...string) {
	r.uses.note(bucket(blob.Files)+"/*", actions...)
}

func (r recordedParts) BeginParts(ctx context.Context, area blob.Area, key string, l blob.Layout) (string, error) {
	r.note("s3:PutObject")
	return r.Parts.BeginParts(ctx, area, key, l)
}

func (r recordedParts) SignPart(ctx context.Context, area blob.Area, key, upload string, l blob.Layout, number int, sum *uint64, expires time.Duration) (blob.SignedPart, error) {
	r.note("s3:PutObject")
	return r.Parts.SignPart(ctx, area, key, upload, l, number, sum, expires)
}

func (r recordedParts) ListParts(ctx context.Context, area blob.Area, key, upload string, after, limit int) ([]blob.Part, error) {
	r.note("s3:ListMultipartUploadParts")
	return r.Parts.ListParts(ctx, area, key, upload, after, limit)
}

// CompleteParts looks for the object if the session is gone.
func (r recordedParts) CompleteParts(ctx context.Context, area blob.Area, key, upload string, l blob.Layout, sum *uint64) (blob.Written, error) {
	r.note("s3:ListMultipartUploadParts", "s3:PutObject", "s3:GetObject")
	r.uses.note(bucket(area), "s3:ListBucket")
	return r.Parts.CompleteParts(ctx, area, key, upload, l, sum)
}

func (r recordedParts) AbortParts(ctx context.Context, area blob.Area, key, upload string) error {
	r.note("s3:AbortMultipartUpload")
	return r.Parts.AbortParts(ctx, area, key, upload)
}
