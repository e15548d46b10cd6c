package stores_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/boot/stores"
	"ferry/shared/service"
	"ferry/shared/users"
)

// inAWS is the configuration of an account that no test calls.
func inAWS(context.Context) (aws.Config, error) { return aws.Config{Region: "eu-south-1"}, nil }

func TestTheTableAndTheFilesAreChosenSeparately(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table                  string
		bucket                 string
		localTable, localFiles bool
	}{
		"both in a folder":       {localTable: true, localFiles: true},
		"the files in buckets":   {bucket: "files", localTable: true},
		"the table in DynamoDB":  {table: "table", localFiles: true},
		"nothing on the machine": {table: "table", bucket: "files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := stores.Place{Dir: t.TempDir(), Table: c.table, FilesBucket: c.bucket, AWS: inAWS}
			if c.bucket != "" {
				at.BackupBucket = "backup"
			}
			s, err := stores.Open(t.Context(), at, local.Options{NoSync: true}, stores.Files, stores.Key)
			expect.NoErr(t, err)
			expect.Equal(t, "the files are on this machine", s.Blobs.Local(), c.localFiles)
			expect.Equal(t, "and their medium is known", s.Medium != nil, c.localFiles)
			expect.Equal(t, "counts are for this process alone", s.CountWait == 0, c.localTable)
			if c.localTable {
				_, err = service.New(s.Ports, service.Settings{}).Users().Get(t.Context(), "ann")
				expect.Err(t, "looking for a user", err, users.ErrUnknown)
			}
			if c.localFiles {
				_, err = s.Blobs.Create(t.Context(), blob.Files, "ann/1", strings.NewReader("small"), -1)
				expect.NoErr(t, err)
			}
			expect.NoErr(t, s.Close())
		})
	}
}

func TestOnlyWhatIsNeededOfAStackMustHaveAName(t *testing.T) {
	t.Parallel()
	at := stores.Place{Table: "table", AWS: inAWS}
	s, err := stores.Open(t.Context(), at, local.Options{})
	expect.NoErr(t, err)
	expect.Equal(t, "there are files", s.Blobs != nil, false)
	_, err = stores.Open(t.Context(), at, local.Options{}, stores.Files, stores.Key)
	for _, name := range []string{"FERRY_FILES_BUCKET", "FERRY_BACKUP_BUCKET", "FERRY_KEY_PARAMETER"} {
		if err == nil || !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("%s is missing: %v", name, err)
		}
	}
}

func TestAFolderThatIsAFileIsRefusedByTheTableAndByTheFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	expect.NoErr(t, os.WriteFile(file, nil, 0o600))
	for _, table := range []string{"", "table"} {
		at := stores.Place{Dir: file, Table: table, AWS: inAWS}
		if _, err := stores.Open(t.Context(), at, local.Options{}, stores.Files); err == nil {
			t.Errorf("with the table %q it is opened", table)
		}
	}
}
