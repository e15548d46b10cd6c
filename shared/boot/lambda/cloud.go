package lambda

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Lambda returns the Cloud of a Lambda function, from the variables that Lambda
// sets. The SDK's own reading of its configuration knows many more sources; in
// a function there are none of them, and their code costs a good part of its start.
func LambdaCloud(getenv func(string) string) (*Cloud, error) {
	c := &Cloud{Getenv: getenv, Config: aws.Config{
		// The SDK's defaults, which the zero values are not.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}}
	region, err1 := c.Name("AWS_REGION")
	id, err2 := c.Name("AWS_ACCESS_KEY_ID")
	secret, err3 := c.Name("AWS_SECRET_ACCESS_KEY")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	found := aws.Credentials{
		AccessKeyID: id, SecretAccessKey: secret, SessionToken: getenv("AWS_SESSION_TOKEN"), Source: "environment",
	}
	c.Config.Region = region
	c.Config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return found, nil })
	return c, nil
}
