package boottest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/table/dynamo"
	"ferry/shared/table/tabletest"
)

// Deployed tells another process how to use a stack in an emulator of AWS.
type Deployed struct {
	Base        string            // the API's address, with /v1
	Environment map[string]string // of a program that works with the stack's data
}

// Make makes an empty table and empty buckets, with names that begin with name, in the
// stand-ins that infra/awslocal starts.
func Make(ctx context.Context, name string) (Deployed, error) {
	d := Deployed{Environment: map[string]string{
		"FERRY_TABLE":         name,
		"FERRY_KEY_PARAMETER": "/ferry/" + name + "/link-key",
	}}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return d, err
	}
	err = tabletest.CreateTable(ctx, dynamodb.NewFromConfig(cfg), name)
	buckets := awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.UsePathStyle = true })
	for variable, suffix := range map[string]string{"FERRY_FILES_BUCKET": "-files", "FERRY_BACKUP_BUCKET": "-backup"} {
		bucket := name + suffix
		_, failed := buckets.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: &bucket})
		d.Environment[variable], err = bucket, errors.Join(err, failed)
	}
	return d, err
}

// Getenv returns a variable for a program that works with the stack's data.
func (d Deployed) Getenv(name string) string {
	return cmp.Or(d.Environment[name], os.Getenv(name))
}

// Service returns a service on the stack's data in this process, as an operator's commands use it.
func (d Deployed) Service(ctx context.Context, log *slog.Logger) (*service.Service, error) {
	settings := service.Settings{PublicURL: d.Base}
	settings.Retention.KeepDays, settings.Retention.BackupDays = 30, 90 // as in the template
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	cloud := &lambda.Cloud{Getenv: d.Getenv, Config: cfg, Settings: settings}
	p, err := cloud.Ports(lambda.Table(dynamo.Open), lambda.Blobs(s3.Open), lambda.LinkKey)
	if err != nil {
		return nil, err
	}
	p.Log = log
	if err := cloud.Begin(ctx); err != nil {
		return nil, err
	}
	return service.New(*p, cloud.Settings), table.CheckFormat(ctx, p.Table)
}
