// Package linkkey makes the key of a stack's links, once, when the stack is
// made. It is a resource of the template without a type of AWS's own: a random
// secret that neither the template nor a function's environment ever holds.
package linkkey

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"ferry/shared/auth"
	ferrylambda "ferry/shared/boot/lambda"

	"ferry/shared/api"
)

// Run answers CloudFormation's requests as a Lambda function. It does not return.
func Run() {
	var h cfn.CustomResourceFunction
	ferrylambda.Open(os.Getenv, func(c *ferrylambda.Cloud, _ *api.Ports) error {
		name, err := c.Name("FERRY_KEY_PARAMETER")
		h = Handler(client(c), name, rand.Reader)
		return err
	})
	lambda.Start(cfn.LambdaWrap(h))
}

func client(c *ferrylambda.Cloud) *ssm.Client {
	return ssm.NewFromConfig(c.Config, func(o *ssm.Options) {
		if address := c.Endpoint("SSM"); address != nil {
			o.BaseEndpoint = address
		}
	})
}

// Store is what Handler uses of *ssm.Client.
type Store interface {
	PutParameter(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error)
}

// Handler makes the parameter of this name when the resource is created, with
// a fresh key read from random. One that is there stays as it is: with another
// key all links that were ever sent would be dead. So it stays too when the
// resource is changed or deleted.
func Handler(store Store, name string, random io.Reader) cfn.CustomResourceFunction {
	return func(ctx context.Context, e cfn.Event) (id string, data map[string]any, err error) {
		if e.RequestType != cfn.RequestCreate {
			return e.PhysicalResourceID, nil, nil
		}
		key, err := auth.NewLinkKey(random)
		if err != nil {
			return name, nil, err
		}
		_, err = store.PutParameter(ctx, &ssm.PutParameterInput{
			Name: &name, Value: &key, Type: types.ParameterTypeSecureString, Overwrite: aws.Bool(false),
			Description: aws.String("Key of Ferry's download links. With another one all links that were sent are dead."),
		})
		if _, exists := errors.AsType[*types.ParameterAlreadyExists](err); err != nil && !exists {
			return name, nil, fmt.Errorf("storing the link key: %w", err)
		}
		return name, nil, nil
	}
}
