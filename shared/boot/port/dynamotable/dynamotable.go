// Package dynamotable opens the port Table on DynamoDB.
package dynamotable

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"ferry/shared/table/dynamo"

	"ferry/shared/boot/lambda"

	"ferry/shared/api"
)

// Open opens the table that FERRY_TABLE names.
func Open(c *lambda.Cloud, p *api.Ports) error {
	name, err := c.Name("FERRY_TABLE")
	if err != nil {
		return err
	}
	client := dynamodb.NewFromConfig(c.Config, func(o *dynamodb.Options) {
		if address := c.Endpoint("DYNAMODB"); address != nil {
			o.BaseEndpoint = address
		}
	})
	p.Table = dynamo.New(client, name)
	return nil
}
