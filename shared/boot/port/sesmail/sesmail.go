// Package sesmail opens the port Mail on SES.
package sesmail

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/sesv2"

	"ferry/shared/boot/lambda"
	"ferry/shared/notify/mail/ses"

	"ferry/shared/api"
)

// Open opens SES with the sender that FERRY_MAIL_FROM names and the
// configuration set that FERRY_MAIL_EVENTS names.
func Open(c *lambda.Cloud, p *api.Ports) error {
	from, err1 := c.Name("FERRY_MAIL_FROM")
	set, err2 := c.Name("FERRY_MAIL_EVENTS")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	client := sesv2.NewFromConfig(c.Config, func(o *sesv2.Options) {
		if address := c.Endpoint("SESV2"); address != nil {
			o.BaseEndpoint = address
		}
	})
	p.Mail, p.MailFrom = ses.Sender{Client: client, ConfigurationSet: set}, from
	return nil
}
