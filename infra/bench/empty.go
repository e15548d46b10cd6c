//go:build ignore

// The control: a Lambda function that does nothing.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() { lambda.Start(func(context.Context) error { return nil }) }
