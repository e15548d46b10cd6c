package boottest

import (
	"cmp"
	"context"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"

	"ferry/shared/api"
	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

// Deployed tells another process how to use a stack in an emulator of AWS.
type Deployed struct {
	Base        string            // the API's address, with /v1
	Environment map[string]string // of a program that works with the stack's data
}

// Ports opens the stack's data in this process, as an operator's commands do.
func (d Deployed) Ports(ctx context.Context) (*api.Ports, error) {
	settings := api.Settings{PublicURL: d.Base}
	settings.Retention.KeepDays, settings.Retention.BackupDays = 30, 90 // as in the template
	getenv := func(name string) string { return cmp.Or(d.Environment[name], os.Getenv(name)) }
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	cloud := &lambda.Cloud{Getenv: getenv, Config: cfg}
	p, err := cloud.Ports(settings, lambda.Table(dynamo.Open), lambda.Blobs(s3.Open), lambda.LinkKey)
	if err != nil {
		return nil, err
	}
	return p, cloud.Begin(ctx)
}
