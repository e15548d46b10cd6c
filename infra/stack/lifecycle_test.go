package stack

import (
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
)

// TestNoBucketEndsAnUploadThatIsStillKnown compares the buckets' rule for
// unfinished uploads with the life of a session and the memory of it.
func TestNoBucketEndsAnUploadThatIsStillKnown(t *testing.T) {
	t.Parallel()
	if blob.PartsLife <= files.SessionLife {
		t.Errorf("the store keeps parts for %s and a session is open for %s", blob.PartsLife, files.SessionLife)
	}
	tpl := read(t)
	for _, bucket := range tpl.ofType("AWS::S3::Bucket") {
		rules := list(at(tpl.Resources[bucket], "Properties", "LifecycleConfiguration", "Rules"))
		if len(rules) != 1 || at(rules[0], "Status") != "Enabled" {
			t.Fatalf("%s: the rules are %v", bucket, rules)
		}
		days, _ := at(rules[0], "AbortIncompleteMultipartUpload", "DaysAfterInitiation").(int)
		if life := time.Duration(days) * 24 * time.Hour; life <= blob.PartsLife {
			t.Errorf("%s ends an upload after %s, and a session is known for %s", bucket, life, blob.PartsLife)
		}
	}
}
