package s3

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"ferry/shared/blob"
)

// classes notes the storage class that each request asks for, by operation: the
// stand-in calls all objects STANDARD.
type classes struct {
	mu  sync.Mutex
	all map[string]string
}

func (c *classes) note(o *s3.Options) {
	observe(o, func(operation string, req *smithyhttp.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all[operation] = req.Header.Get("X-Amz-Storage-Class")
	})
}

func (c *classes) take() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.all
	c.all = map[string]string{}
	return taken
}

// TestACopyToTheBackupAreaOfMoreThan256KiBHasTheStorageClass also pins the calls: only
// where the size decides does a copy ask for it.
func TestACopyToTheBackupAreaOfMoreThan256KiBHasTheStorageClass(t *testing.T) {
	t.Parallel()
	noted := &classes{all: map[string]string{}}
	client, buckets := connect(t, noted.note)
	sizes := []int{0, 256 << 10, 256<<10 + 1, 30 * mib}
	for _, area := range blob.Areas() {
		for _, size := range sizes {
			put(t, client, buckets[area], fmt.Sprintf("o/%d", size), make([]byte, size))
		}
	}
	noted.take()
	const glacier = "GLACIER_IR"
	inParts := func(class string) map[string]string {
		return map[string]string{"HeadObject": "", "CopyObject": strings.TrimPrefix(class, "STANDARD"), "ListMultipartUploads": "", "CreateMultipartUpload": class,
			"UploadPartCopy": "", "CompleteMultipartUpload": ""}
	}
	atOnce := map[string]string{"CopyObject": ""}
	for _, c := range []struct {
		class string
		to    blob.Area
		size  int
		want  map[string]string
	}{
		{glacier, blob.Backup, 0, map[string]string{"HeadObject": "", "CopyObject": ""}},
		{glacier, blob.Backup, 256 << 10, map[string]string{"HeadObject": "", "CopyObject": ""}},
		{glacier, blob.Backup, 256<<10 + 1, map[string]string{"HeadObject": "", "CopyObject": glacier}},
		{glacier, blob.Backup, 30 * mib, inParts(glacier)},
		{glacier, blob.Files, 256<<10 + 1, atOnce},
		{glacier, blob.Files, 30 * mib, inParts("")},
		{"STANDARD", blob.Backup, 256<<10 + 1, atOnce},
		{"STANDARD", blob.Backup, 30 * mib, inParts("STANDARD")},
		{"", blob.Backup, 256<<10 + 1, atOnce},
		{"", blob.Files, 256<<10 + 1, atOnce},
	} {
		t.Run(fmt.Sprintf("%s to %s of %d bytes", c.class, c.to, c.size), func(t *testing.T) {
			store := New(client, buckets)
			store.sizes.copyPart = 8 * mib
			store.classes = map[string]types.StorageClass{buckets[blob.Backup]: types.StorageClass(c.class)}
			from, key := map[blob.Area]blob.Area{blob.Files: blob.Backup, blob.Backup: blob.Files}[c.to], fmt.Sprintf("o/%d", c.size)
			to := fmt.Sprintf("%s-copy/%d", c.class, c.size)
			must(t, store.Copy(t.Context(), from, key, c.to, to))
			if got := noted.take(); !maps.Equal(got, c.want) {
				t.Errorf("the calls asked for the classes %v, want %v", got, c.want)
			}
			wantContent(t, store, c.to, to, make([]byte, c.size))
			noted.take()
		})
	}
	store := New(client, buckets)
	store.classes = map[string]types.StorageClass{buckets[blob.Backup]: glacier}
	if err := expect(store.Copy(t.Context(), blob.Files, "o/none", blob.Backup, "o/none"), blob.ErrNotFound); err != nil {
		t.Error(err)
	}
}

// TestAnInterruptedCopyKeepsItsStorageClass lets an operator change the class meanwhile.
func TestAnInterruptedCopyKeepsItsStorageClass(t *testing.T) {
	t.Parallel()
	noted := &classes{all: map[string]string{}}
	client, buckets := connect(t, noted.note)
	store := New(client, buckets)
	store.sizes.copyPart = 8 * mib
	put(t, client, buckets[blob.Files], "o/large", make([]byte, 30*mib))
	to, err := store.locate(blob.Backup, "o/copied")
	must(t, err)
	if _, _, err := store.resume(t.Context(), to, store.classes[to.bucket], blob.Layout{}); err != nil {
		t.Fatal(err)
	}
	store.classes = map[string]types.StorageClass{buckets[blob.Backup]: types.StorageClassGlacierIr}
	noted.take()
	must(t, store.Copy(t.Context(), blob.Files, "o/large", blob.Backup, "o/copied"))
	if class, again := noted.take()["CreateMultipartUpload"]; again {
		t.Errorf("the copy began again, with the class %q", class)
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
			head, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(buckets[area]), Key: &key})
			must(t, err)
			if head.StorageClass != want {
				t.Errorf("%s of %s has the class %q, want %q", key, area, head.StorageClass, want)
			}
		}
	}
}
