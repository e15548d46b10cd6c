package worker

import (
	"context"
	"crypto/rand"
	"io"
	"os"

	"github.com/aws/aws-lambda-go/cfn"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/boot/lambda"
)

// RunLinkKey answers CloudFormation's requests for the key of a stack's links, a
// custom resource of the template: a random secret that neither the template nor a
// function's environment ever contains. It does not return.
func RunLinkKey() {
	var h cfn.CustomResourceFunction
	lambda.Open(os.Getenv, func(c *lambda.Cloud, _ *api.Ports) error {
		name, err := c.Name("FERRY_KEY_PARAMETER")
		h = LinkKeyHandler(c, name, rand.Reader)
		return err
	})
	awslambda.Start(cfn.LambdaWrap(h))
}

// LinkKeyHandler returns a function that stores a new key, read from random, in the
// parameter of this name when the resource is created. An existing key stays, also
// when the resource is changed or deleted: with another key all links that were ever
// sent would be dead.
func LinkKeyHandler(c *lambda.Cloud, name string, random io.Reader) cfn.CustomResourceFunction {
	return func(ctx context.Context, e cfn.Event) (id string, data map[string]any, err error) {
		if e.RequestType != cfn.RequestCreate {
			return e.PhysicalResourceID, nil, nil
		}
		key, err := auth.RandomToken(random)
		if err != nil {
			return name, nil, err
		}
		return name, nil, lambda.StoreLinkKey(ctx, c, name, key)
	}
}
