package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"ferry/shared/blob"
	"ferry/shared/blob/s3"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/table/dynamo"
	"ferry/shared/table/tabletest"
	"ferry/shared/users"
)

func TestACheckBesideAServerNamesEachFault(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	h.write("big", []byte(strings.Repeat("0123456789", 10_000)))
	h.write("small", []byte("content"))
	h.run("", "up", "--each", "big", "small", "-q", "--connections", "1").want(t, exitOK)
	check := func(code int, out, errs string, args ...string) string {
		t.Helper()
		r := runFerry(t, s.Dir, "", append([]string{"check"}, args...)...)
		if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.err, errs) {
			t.Errorf("ferry check %q: code %d, want %d, with %q and %q\n%s%s",
				args, r.code, code, out, errs, r.out, r.err)
		}
		return r.out
	}
	check(exitOK, "2 files and 2 objects compared; faults: 0, mended: 0, left to the sweep: 0\n", "")
	check(exitOK, `"files": 2,`, "", "--json")
	keys := s.Objects(blob.Files)
	key := keys[slices.IndexFunc(keys, func(key string) bool { return strings.Contains(key, "/1-") })]
	path := filepath.Join(s.Dir, "files", key)
	content := []byte(h.read("big"))
	content[70_000] ^= 4
	must(t, os.WriteFile(path, content, 0o600))
	check(exitOK, "faults: 0", "", "--quick")
	check(exitDamaged, "checksum ann 1 files/"+key+": the CRC64NVME is ", "ferry: faults left: 1\n")
	check(exitDamaged, "; get it from a backup: ferry restore-data BACKUP --file ann/1\n", "")
	check(exitDamaged, `"kind": "checksum",`, "", "--json")
	must(t, s.Data.Table.Write(t.Context(), table.Update(users.Key("ann")).Set("quota", 1_000_000).Set("used", 3)))
	const quota = "quota ann - user#ann: 3 bytes count as used, but files and reservations have 100007"
	check(exitDamaged, quota+"\n", "faults left: 2")
	check(exitDamaged, quota+" (mended)\n", "faults left: 1", "--repair")
	must(t, os.WriteFile(path, []byte(h.read("big")), 0o600))
	check(exitOK, "faults: 0", "")
	runFerry(t, t.TempDir(), "", "check").want(t, exitSettings)
}

// TestACheckOfAStackReadsNoBytes damages a table and buckets like those of a stack.
func TestACheckOfAStackReadsNoBytes(t *testing.T) {
	t.Parallel()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/ferry")
	}
	ctx := t.Context()
	cfg, err := config.LoadDefaultConfig(ctx)
	must(t, err)
	name := "ferry-" + strings.ToLower(rand.Text())
	db, objects := dynamodb.NewFromConfig(cfg), awss3.NewFromConfig(cfg, func(o *awss3.Options) {
		o.UsePathStyle = true
	})
	must(t, tabletest.CreateTable(ctx, db, name))
	t.Cleanup(func() { db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}) })
	buckets := s3.Buckets{blob.Files: name + "-files", blob.Backup: name + "-backup"}
	for _, bucket := range buckets {
		_, err := objects.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: &bucket})
		must(t, err)
	}
	store, key := s3.New(objects, buckets), strings.Repeat("A", 43)
	p := service.Ports{Blobs: store, Parts: store, Table: dynamo.New(db, name), Random: rand.Reader, Now: time.Now}
	p.Key, err = keys.Parse(key)
	must(t, err)
	must(t, table.CheckFormat(ctx, p.Table))
	s := service.New(p, service.Settings{})
	must(t, s.Users().Add(ctx, users.User{Name: "alice", State: users.Active, Quota: 1000}))
	for _, content := range []string{"one", "two", "six"} {
		up, err := s.Files().Begin(ctx, "alice", files.By{User: "alice"}, int64(len(content)), files.Sending{})
		must(t, err)
		must(t, up.Add(ctx, files.Part{Name: content, Body: strings.NewReader(content), Size: -1}))
		_, err = up.Commit(ctx, 0)
		must(t, err)
	}
	parameters := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"Parameter":{"Value":%q}}`, key)
	}))
	t.Cleanup(parameters.Close)
	h := newHome(t, append(os.Environ(), "AWS_ENDPOINT_URL="+parameters.URL)...)
	check := func(code int, want string, more ...string) {
		t.Helper()
		r := h.run("", append([]string{"check", "--table", name, "--files-bucket", buckets[blob.Files],
			"--backup-bucket", buckets[blob.Backup], "--key-parameter", "key"}, more...)...)
		if r.code != code || !strings.Contains(r.out, want) {
			t.Errorf("%q: code %d, want %d with %q\n%s%s", more, r.code, code, want, r.out, r.err)
		}
	}
	check(exitOK, "3 files and 3 objects compared; faults: 0")
	all, err := store.List(ctx, blob.Files, "", 3)
	must(t, err)
	must(t, store.Delete(ctx, blob.Files, all[0].Key))
	must(t, store.Delete(ctx, blob.Files, all[1].Key))
	_, err = store.Create(ctx, blob.Files, all[1].Key, strings.NewReader("TWO"), -1)
	must(t, err)
	must(t, p.Table.Write(ctx, table.Update(users.Key("alice")).Set("used", 5)))
	_, lost, _ := files.ParseBlobKey(all[0].Key) // keys sort by shard, not by id
	_, other, _ := files.ParseBlobKey(all[1].Key)
	check(exitDamaged, fmt.Sprintf("bytes alice %d files/%s: the bytes are missing\n", lost, all[0].Key))
	check(exitDamaged, fmt.Sprintf("checksum alice %d files/%s: the CRC64NVME is ", other, all[1].Key), "--repair")
	check(exitDamaged, "faults: 2, mended: 0")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
