// Package snstopics opens the port Topics on SNS.
package snstopics

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/sns"

	"ferry/shared/boot/lambda"
	"ferry/shared/notify"
	ferrysns "ferry/shared/notify/sns"

	"ferry/shared/api"
)

// Open opens the topics that FERRY_NOTICES_TOPIC and FERRY_EVENTS_TOPIC name
// by their ARNs.
func Open(c *lambda.Cloud, p *api.Ports) error {
	notices, err1 := c.Name("FERRY_NOTICES_TOPIC")
	events, err2 := c.Name("FERRY_EVENTS_TOPIC")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	client := sns.NewFromConfig(c.Config, func(o *sns.Options) {
		if address := c.Endpoint("SNS"); address != nil {
			o.BaseEndpoint = address
		}
	})
	p.Topics = ferrysns.Topics{Client: client, ARNs: map[notify.Topic]string{notify.NoticesTopic: notices, notify.EventsTopic: events}}
	return nil
}
