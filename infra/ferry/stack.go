package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"

	"ferry/shared/api"
	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

// openStack opens ports on the data of a stack. The SDK's own configuration is
// honoured: its variables, such as AWS_PROFILE, AWS_REGION and AWS_ENDPOINT_URL,
// and its files.
func openStack(ctx context.Context, settings api.Settings, getenv func(string) string, ports ...lambda.Opener) (*api.Ports, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	cloud := &lambda.Cloud{Getenv: getenv, Config: cfg}
	p, err := cloud.Ports(settings, ports...)
	if err != nil {
		return nil, err
	}
	return p, cloud.Begin(ctx)
}

func tablePort() lambda.Opener { return lambda.Table(dynamo.Open) }

func allPorts() []lambda.Opener {
	return []lambda.Opener{tablePort(), lambda.Blobs(s3.Open), lambda.LinkKey}
}
