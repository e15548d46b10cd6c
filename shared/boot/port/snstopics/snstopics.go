// Package snstopics opens the port Topics on SNS.
package snstopics

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/sns"

	"ferry/shared/boot/port"
	"ferry/shared/endpoint"
	"ferry/shared/relay"
	snsrelay "ferry/shared/relay/sns"
)

// Open opens the topics that FERRY_NOTICES_TOPIC and FERRY_EVENTS_TOPIC name
// by their ARNs.
func Open(c *port.Cloud, p *endpoint.Ports) error {
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
	p.Topics = snsrelay.Topics{Client: client, ARNs: map[relay.Topic]string{relay.Notices: notices, relay.Events: events}}
	return nil
}
