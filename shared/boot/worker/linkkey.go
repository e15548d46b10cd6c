package worker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/aws/aws-lambda-go/cfn"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"ferry/shared/boot/lambda"
	"ferry/shared/keys"
	"ferry/shared/service"
)

// RunLinkKey answers CloudFormation's requests for a stack's link key, a custom resource
// of the template: a random secret that neither the template nor a function's environment
// ever contains. It does not return.
func RunLinkKey() {
	var h cfn.CustomResourceFunction
	lambda.Open(os.Getenv, func(c *lambda.Cloud, _ *service.Ports) {
		h = LinkKeyHandler(c, c.Name("FERRY_KEY_PARAMETER"), c.Name("FERRY_TABLE"), rand.Reader)
	})
	awslambda.Start(cfn.LambdaWrap(h))
}

// LinkKeyHandler returns a function that stores a new key, read from random, in the
// parameter of this name. An existing key stays, even when the resource is deleted: with
// another key all links ever sent would be dead.
//
// It also protects the stack's table from deletion. The template cannot: a stack whose
// creation fails could not delete its own empty table. CloudFormation deletes the
// resource only then, and keeps it when a stack that was used is deleted.
//
// It also answers requests for a Custom::Digest, which changes whenever its property Of does.
func LinkKeyHandler(
	c *lambda.Cloud,
	name, table string,
	random io.Reader,
) cfn.CustomResourceFunction {
	return func(ctx context.Context, e cfn.Event) (id string, data map[string]any, err error) {
		if e.ResourceType == "Custom::Digest" {
			return digest(e)
		}
		if e.RequestType == cfn.RequestDelete {
			return e.PhysicalResourceID, nil, lambda.ProtectTable(ctx, c, table, false)
		}
		key, err := keys.RandomToken(random)
		if err == nil {
			err = lambda.StoreLinkKey(ctx, c, name, key)
		}
		if err != nil {
			return name, nil, err
		}
		return name, nil, lambda.ProtectTable(ctx, c, table, true)
	}
}

func digest(e cfn.Event) (id string, data map[string]any, err error) {
	text, err := json.Marshal(e.ResourceProperties["Of"]) // with sorted names
	return e.LogicalResourceID, map[string]any{"Digest": fmt.Sprintf("%.8x",
		sha256.Sum256(text))}, err
}
