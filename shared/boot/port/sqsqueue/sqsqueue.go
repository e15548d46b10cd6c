// Package sqsqueue opens the port Queue on SQS.
package sqsqueue

import (
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"ferry/shared/boot/lambda"
	ferrysqs "ferry/shared/notify/sqs"

	"ferry/shared/api"
)

// Open opens the queue that FERRY_QUEUE names by its URL.
func Open(c *lambda.Cloud, p *api.Ports) error {
	url, err := c.Name("FERRY_QUEUE")
	if err != nil {
		return err
	}
	client := sqs.NewFromConfig(c.Config, func(o *sqs.Options) {
		if address := c.Endpoint("SQS"); address != nil {
			o.BaseEndpoint = address
		}
	})
	p.Queue = ferrysqs.Queue{Client: client, URL: url}
	return nil
}
