// Package smstext opens the port SMS on SNS.
package smstext

import (
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"ferry/shared/boot/lambda"
	ferrysns "ferry/shared/notify/sns"

	"ferry/shared/api"
)

// Open opens SNS for text messages, with the sender that FERRY_SMS_SENDER names
// if it is set.
func Open(c *lambda.Cloud, p *api.Ports) error {
	client := sns.NewFromConfig(c.Config, func(o *sns.Options) {
		if address := c.Endpoint("SNS"); address != nil {
			o.BaseEndpoint = address
		}
	})
	p.SMS = ferrysns.Sender{Client: client, SenderID: c.Getenv("FERRY_SMS_SENDER")}
	return nil
}
