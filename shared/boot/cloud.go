// Package boot opens the ports of a program that runs outside Lambda and works
// with the data of a stack. Lambda functions start with package function.
package boot

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"

	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"

	"ferry/shared/boot/lambda"

	"ferry/shared/api"
)

// Port opens one port and puts it in place.
type Port = lambda.Opener

// Table opens the table that FERRY_TABLE names.
func Table(c *lambda.Cloud, p *api.Ports) error { return dynamotable.Open(c, p) }

// Blobs opens the buckets that FERRY_FILES_BUCKET and FERRY_BACKUP_BUCKET name.
func Blobs(c *lambda.Cloud, p *api.Ports) error { return s3blobs.Open(c, p) }

// LinkKey reads the key that links are made with from the parameter that
// FERRY_KEY_PARAMETER names.
func LinkKey(c *lambda.Cloud, p *api.Ports) error { return lambda.LinkKey(c, p) }

// OpenPorts opens ports on AWS. The SDK's own configuration is honoured: its
// variables, such as AWS_PROFILE, AWS_REGION and AWS_ENDPOINT_URL, and its files.
func OpenPorts(ctx context.Context, settings api.Settings, getenv func(string) string, ports ...Port) (*api.Ports, error) {
	p, err := lambda.Base(settings)
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	cloud := &lambda.Cloud{Getenv: getenv, Config: cfg}
	if err := cloud.Open(p, ports...); err != nil {
		return nil, err
	}
	return p, cloud.Begin(ctx)
}
