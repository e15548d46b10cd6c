package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
)

// noted keeps something of the requests that go out, by operation.
type noted[T any] struct {
	mu  sync.Mutex
	all map[string]T
	add func(before T, req *smithyhttp.Request) T
}

// counter counts requests.
func counter() *noted[int] {
	return &noted[int]{all: map[string]int{}, add: func(n int, _ *smithyhttp.Request) int { return n + 1 }}
}

func (n *noted[T]) note(o *s3.Options) {
	observe(o, func(operation string, req *smithyhttp.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.all[operation] = n.add(n.all[operation], req)
	})
}

// observe calls seen with each request that goes out, and its operation.
func observe(o *s3.Options, seen func(operation string, req *smithyhttp.Request)) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("Observe",
			func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
				seen(awsmiddleware.GetOperationName(ctx), in.Request.(*smithyhttp.Request))
				return next.HandleDeserialize(ctx, in)
			}), middleware.After)
	})
}

// take returns what was noted, such as "CopyObject:1 HeadObject:2", and forgets it.
func (n *noted[T]) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := fmt.Sprint(n.all) // sorted
	clear(n.all)
	return strings.TrimSuffix(strings.TrimPrefix(taken, "map["), "]")
}

// read opens an object, seeks to each place and reads a byte there.
func read(ctx context.Context, store *Store, key string, places ...int64) error {
	r, err := store.Open(ctx, blob.Files, key)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := r.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	for _, place := range places {
		if _, err := r.Seek(place, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
			return err
		}
	}
	return nil
}

// put stores an object with a checksum of another kind: the stand-in gives each copied part
// the checksum of the whole object, unless that is so.
func put(t *testing.T, client *s3.Client, bucket, key string, content []byte) {
	t.Helper()
	must(t, failure(client.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: bytes.NewReader(content), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
	})))
}

func TestEachMethodMakesTheStatedCalls(t *testing.T) {
	t.Parallel()
	counted := counter()
	client, buckets := connect(t, counted.note)
	store := New(client, buckets)
	store.sizes.copyPart = 8 * mib
	put(t, client, buckets[blob.Files], "o/large", make([]byte, 30*mib))
	counted.take()
	ctx := t.Context()
	create := func(key string, size int, announced int64) func() error {
		return func() error {
			return failure(store.Create(ctx, blob.Files, key, stream(make([]byte, size)), announced))
		}
	}
	refused := func(do func() error, want error) func() error {
		return func() error {
			expect.Err(t, "what is refused", do(), want)
			return nil
		}
	}
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{name: "creating 8 MiB", do: create("o/8", 8*mib, 8*mib), want: "PutObject:1"},
		{name: "creating 8 MiB of unknown size", do: create("o/8u", 8*mib, -1), want: "PutObject:1"},
		{name: "creating a taken key", do: refused(create("o/8", 1, 1), blob.ErrExists), want: "PutObject:1"},
		{name: "creating one byte more than 8 MiB", do: create("o/9", 8*mib+1, -1),
			want: "CompleteMultipartUpload:1 CreateMultipartUpload:1 UploadPart:2"},
		{name: "an upload cut short", do: refused(create("o/cut", 7*mib, 8*mib), blob.ErrLength)},
		{
			name: "reading from the start",
			do:   func() error { return read(ctx, store, "o/8", 0, 1, 2) },
			want: "GetObject:1",
		},
		{name: "reading a range", do: func() error { return read(ctx, store, "o/8", 1000, 1001) }, want: "GetObject:2"},
		{
			name: "describing",
			do:   func() error { return failure(store.Describe(ctx, blob.Files, "o/8")) },
			want: "HeadObject:1",
		},
		{
			name: "copying",
			do:   func() error { return store.Copy(ctx, blob.Files, "o/8", blob.Backup, "o/8") },
			want: "CopyObject:1",
		},
		{name: "copying an object too large for one call",
			do: func() error { return store.Copy(ctx, blob.Files, "o/large", blob.Backup, "o/large") },
			want: "CompleteMultipartUpload:1 CopyObject:1 CreateMultipartUpload:1 HeadObject:2 ListMultipartUploads:1 " +
				"UploadPartCopy:4"},
		{name: "deleting", do: func() error { return store.Delete(ctx, blob.Files, "o/8") }, want: "DeleteObject:1"},
		{
			name: "listing",
			do:   func() error { return failure(store.List(ctx, blob.Files, "", blob.MaxList)) },
			want: "ListObjectsV2:1",
		},
		{
			name: "sweeping",
			do:   func() error { return failure(store.Sweep(ctx, time.Now(), nil)) },
			want: "ListMultipartUploads:2",
		},
		{name: "signing", do: func() error {
			return failure(store.SignGet(ctx, blob.Files, "o/8", blob.Signed{Expires: time.Minute}))
		}},
	} {
		must(t, step.do())
		if got := counted.take(); got != step.want {
			t.Errorf("%s made the calls %s, want %s", step.name, got, step.want)
		}
	}
	wantContent(t, store, blob.Backup, "o/large", make([]byte, 30*mib))
}

// TestAnInterruptedCopyGoesOnWhereItStopped ends the first try after two of its parts.
func TestAnInterruptedCopyGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	counted := counter()
	client, buckets := connect(t, counted.note)
	store := New(client, buckets)
	store.sizes.copyPart = 8 * mib
	content := bytes.Repeat([]byte("0123456789abcdef"), 30*mib/16)
	put(t, client, buckets[blob.Files], "o/large", content)
	from, to := location{buckets[blob.Files], "o/large"}, location{buckets[blob.Backup], "o/copied"}
	u, _, err := store.resume(t.Context(), to, "", blob.Layout{})
	must(t, err)
	for number := range int32(2) {
		must(t, failure(client.UploadPartCopy(t.Context(), &s3.UploadPartCopyInput{
			Bucket: &to.bucket, Key: &to.key, UploadId: &u.id, PartNumber: aws.Int32(number + 1), CopySource: aws.String(from.escaped()),
			CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", number*8*mib, (number+1)*8*mib-1)),
		})))
	}
	for try, want := range []string{
		"CompleteMultipartUpload:1 CopyObject:1 HeadObject:2 ListMultipartUploads:1 ListParts:1 UploadPartCopy:2",
		"CopyObject:1 HeadObject:2",
	} {
		counted.take()
		must(t, store.Copy(t.Context(), blob.Files, "o/large", blob.Backup, "o/copied"))
		if got := counted.take(); got != want {
			t.Errorf("try %d made the calls %s, want %s", try, got, want)
		}
	}
	wantContent(t, store, blob.Backup, "o/copied", content)
}

// TestTwoCopiesAtOnceBothSucceed has another copy finish the parts of this one, and then
// even remove the source.
func TestTwoCopiesAtOnceBothSucceed(t *testing.T) {
	t.Parallel()
	for _, removed := range []bool{false, true} {
		client, buckets := connect(t)
		other := New(client, buckets)
		other.sizes.copyPart = 8 * mib
		content := make([]byte, 30*mib)
		put(t, client, buckets[blob.Files], "o/large", content)
		faster := sync.OnceValue(func() error {
			err := other.Copy(t.Context(), blob.Files, "o/large", blob.Backup, "o/copied")
			if err == nil && removed {
				err = other.Delete(t.Context(), blob.Files, "o/large")
			}
			return err
		})
		slower, _ := connect(t, func(o *s3.Options) {
			observe(o, func(operation string, _ *smithyhttp.Request) {
				if operation == "UploadPartCopy" && faster() != nil {
					t.Error(faster())
				}
			})
		})
		store := New(slower, buckets)
		store.sizes = other.sizes
		var want error
		if removed {
			want = blob.ErrNotFound // the caller looks for the bytes elsewhere
		}
		err := store.Copy(t.Context(), blob.Files, "o/large", blob.Backup, "o/copied")
		expect.Err(t, fmt.Sprint("the source is removed: ", removed), err, want)
		wantContent(t, store, blob.Backup, "o/copied", content)
	}
}
