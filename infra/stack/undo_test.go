package stack

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"ferry/shared/blob"
	"ferry/shared/blob/s3"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/files"
	"ferry/shared/service"
	"ferry/shared/table/dynamo"
	"ferry/shared/table/tabletest"
	"ferry/shared/users"
)

// TestADayThatASweepDestroyedComesBackByTheRunbook runs the runbook's own commands.
func TestADayThatASweepDestroyedComesBackByTheRunbook(t *testing.T) {
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/stack")
	}
	for _, program := range []string{"aws", "jq", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the runbook's commands need ", program)
		}
	}
	ctx := t.Context()
	cfg, err := config.LoadDefaultConfig(ctx)
	check(t, err)
	d, err := boottest.Make(ctx, "undo")
	check(t, err)
	d.Environment["OLD"] = "undo-old"
	tables, buckets := dynamodb.NewFromConfig(cfg), awss3.NewFromConfig(cfg, func(o *awss3.Options) {
		o.UsePathStyle = true
	})
	check(t, tabletest.CreateTable(ctx, tables, d.Environment["OLD"]))
	for _, name := range []string{"FERRY_FILES_BUCKET", "FERRY_BACKUP_BUCKET"} {
		_, err = buckets.PutBucketVersioning(ctx, &awss3.PutBucketVersioningInput{
			Bucket: new(d.Environment[name]), VersioningConfiguration: &s3types.VersioningConfiguration{Status: "Enabled"},
		})
		check(t, err)
	}
	p := boottest.Service(t, nil)
	cloud := &lambda.Cloud{Config: cfg, Getenv: d.Getenv}
	check(t, cloud.Open(&p.Ports, lambda.Table(dynamo.Open), lambda.Blobs(s3.Open)))
	p, err = boottest.Fill(t.Context(), p)
	check(t, err)
	before := contents(t, p)
	copyTable(t, tables, d.Environment["FERRY_TABLE"], d.Environment["OLD"]) // stands for the recovery to a point in time
	since := time.Now().UTC().Add(-time.Minute)

	for _, years := range []int{1, 2} { // a sweep that takes all files for expired moves and then removes them
		later := service.New(p.Ports, p.Settings)
		later.Now = func() time.Time { return p.Now().AddDate(years, 0, 0) }
		sweeper := files.Sweeper{Service: later.Files(), Grace: time.Hour}
		_, err := sweeper.Run(ctx)
		check(t, err)
	}
	if len(contents(t, p)) != 0 {
		t.Fatal("the sweep has left files")
	}

	text, err := os.ReadFile(filepath.Join(boottest.Root(t), "infra/runbook/README.md"))
	check(t, err)
	_, script, _ := strings.Cut(string(text), "export SINCE=")
	_, script, _ = strings.Cut(script, "\n")
	script, _, _ = strings.Cut(script, "ferry check")
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Env = append(os.Environ(), "SINCE="+since.Format(time.RFC3339), "AWS_DEFAULT_REGION="+cfg.Region)
	for name, value := range d.Environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	said, err := cmd.CombinedOutput()
	if t.Logf("%s", said); err != nil {
		t.Fatal(err)
	}
	after := contents(t, p)
	for link, content := range before {
		if after[link] != content {
			t.Errorf("%s has %q, want %q", link, after[link], content)
		}
	}
	if len(before) == 0 || len(after) != len(before) {
		t.Errorf("%d files, want %d", len(after), len(before))
	}
}

// contents returns the bytes of all files by the tokens of their links.
func contents(t *testing.T, p *service.Service) map[string]string {
	t.Helper()
	service, links, all := p.Files(), p.Links(), map[string]string{}
	check(t, p.Users().Names(t.Context(), "", func(u users.User, _ error) error {
		for _, area := range blob.Areas() {
			page, err := service.List(t.Context(), u, area, 0, 100)
			check(t, err)
			for _, f := range page.Files {
				link, err := links.Find(t.Context(), area, f.Token, "")
				check(t, err)
				body, err := service.Open(t.Context(), link.File, nil)
				check(t, err)
				content, err := io.ReadAll(body)
				check(t, err)
				check(t, body.Close())
				all[f.Token] = string(content)
			}
		}
		return nil
	}))
	return all
}

func copyTable(t *testing.T, c *dynamodb.Client, from, to string) {
	t.Helper()
	out, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: &from})
	check(t, err)
	for _, item := range out.Items {
		put := types.WriteRequest{PutRequest: &types.PutRequest{Item: item}}
		_, err := c.BatchWriteItem(
			t.Context(),
			&dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{to: {put}}},
		)
		check(t, err)
	}
}
