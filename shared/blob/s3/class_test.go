package s3

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
)

// classes notes the storage class that each request asks for: the stand-in calls all objects STANDARD.
func classes() *noted[string] {
	return &noted[string]{all: map[string]string{}, add: func(_ string, req *smithyhttp.Request) string {
		return req.Header.Get("X-Amz-Storage-Class")
	}}
}

// TestACopyToTheBackupAreaOfMoreThan256KiBHasTheStorageClass also pins the calls: only
// where the size decides does a copy ask for it.
func TestACopyToTheBackupAreaOfMoreThan256KiBHasTheStorageClass(t *testing.T) {
	t.Parallel()
	noted := classes()
	client, buckets := connect(t, noted.note)
	sizes := []int{256 << 10, 256<<10 + 1, 30 * mib}
	for _, area := range blob.Areas() {
		for _, size := range sizes {
			put(t, client, buckets[area], fmt.Sprintf("o/%d", size), make([]byte, size))
		}
	}
	noted.take()
	const glacier = "GLACIER_IR"
	inParts := func(class string) string {
		return fmt.Sprintf("CompleteMultipartUpload: CopyObject:%s CreateMultipartUpload:%s "+
			"HeadObject: ListMultipartUploads: UploadPartCopy:",
			strings.TrimPrefix(class, "STANDARD"), class)
	}
	for _, c := range []struct {
		class string
		to    blob.Area
		size  int
		want  string
	}{
		{class: glacier, to: blob.Backup, size: 256 << 10, want: "CopyObject: HeadObject:"},
		{class: glacier, to: blob.Backup, size: 256<<10 + 1, want: "CopyObject:GLACIER_IR HeadObject:"},
		{class: glacier, to: blob.Backup, size: 30 * mib, want: inParts(glacier)},
		{class: glacier, to: blob.Files, size: 256<<10 + 1, want: "CopyObject:"},
		{class: glacier, to: blob.Files, size: 30 * mib, want: inParts("")},
		{class: "STANDARD", to: blob.Backup, size: 256<<10 + 1, want: "CopyObject:"},
		{class: "STANDARD", to: blob.Backup, size: 30 * mib, want: inParts("STANDARD")},
	} {
		t.Run(fmt.Sprintf("%s to %s of %d bytes", c.class, c.to, c.size), func(t *testing.T) {
			store := New(client, buckets)
			store.sizes.copyPart = 8 * mib
			store.classes = map[string]types.StorageClass{buckets[blob.Backup]: types.StorageClass(c.class)}
			from, key := map[blob.Area]blob.Area{
				blob.Files:  blob.Backup,
				blob.Backup: blob.Files,
			}[c.to], fmt.Sprintf("o/%d", c.size)
			to := fmt.Sprintf("%s-copy/%d", c.class, c.size)
			must(t, store.Copy(t.Context(), from, key, c.to, to))
			if got := noted.take(); got != c.want {
				t.Errorf("the calls asked for the classes %s, want %s", got, c.want)
			}
			wantContent(t, store, c.to, to, make([]byte, c.size))
			noted.take()
		})
	}
	store := New(client, buckets)
	store.classes = map[string]types.StorageClass{buckets[blob.Backup]: glacier}
	missing := store.Copy(t.Context(), blob.Files, "o/none", blob.Backup, "o/none")
	expect.Err(t, "a missing object", missing, blob.ErrNotFound)
}

// TestAnInterruptedCopyKeepsItsStorageClass lets an operator change the class meanwhile.
func TestAnInterruptedCopyKeepsItsStorageClass(t *testing.T) {
	t.Parallel()
	noted := classes()
	client, buckets := connect(t, noted.note)
	store := New(client, buckets)
	store.sizes.copyPart = 8 * mib
	put(t, client, buckets[blob.Files], "o/large", make([]byte, 30*mib))
	to, err := store.locate(blob.Backup, "o/copied")
	must(t, err)
	_, _, err = store.resume(t.Context(), to, store.classes[to.bucket], blob.Layout{})
	must(t, err)
	store.classes = map[string]types.StorageClass{buckets[blob.Backup]: types.StorageClassGlacierIr}
	noted.take()
	must(t, store.Copy(t.Context(), blob.Files, "o/large", blob.Backup, "o/copied"))
	if got := noted.take(); strings.Contains(got, "CreateMultipartUpload") {
		t.Errorf("the copy began again: %s", got)
	}
	wantContent(t, store, blob.Backup, "o/copied", make([]byte, 30*mib))
}

// TestAnObjectOfTheBackupAreaIsInTheStorageClass asks the emulator of AWS, which knows the
// classes of its objects. Unlike S3, it takes that of a copy from the source if none is named.
func TestAnObjectOfTheBackupAreaIsInTheStorageClass(t *testing.T) {
	t.Parallel()
	client, buckets := connect(t, func(o *s3.Options) { o.BaseEndpoint = aws.String(os.Getenv("FERRY_TEST_CLOUD")) })
	store := New(client, buckets)
	store.classes = map[string]types.StorageClass{buckets[blob.Backup]: types.StorageClassGlacierIr}
	for size, want := range map[int]types.StorageClass{256 << 10: "", 256<<10 + 1: types.StorageClassGlacierIr} {
		key := fmt.Sprintf("o/%d", size)
		must(t, failure(store.Create(t.Context(), blob.Files, key, stream(make([]byte, size)), int64(size))))
		must(t, store.Copy(t.Context(), blob.Files, key, blob.Backup, key))
		for area, want := range map[blob.Area]types.StorageClass{blob.Files: "", blob.Backup: want} { // "" is STANDARD
			head, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{
				Bucket: aws.String(buckets[area]),
				Key:    &key,
			})
			must(t, err)
			if head.StorageClass != want {
				t.Errorf("%s of %s has the class %q, want %q", key, area, head.StorageClass, want)
			}
		}
	}
}
