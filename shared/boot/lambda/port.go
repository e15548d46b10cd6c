// Package port says how the ports of a program that works with AWS are opened.
// Each backend has a package of its own below this one, so that a function
// links, and at its start pays for, no more of the SDK than it uses.

package lambda

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/api"
)

// Opener opens one port on AWS and puts it in place.
type Opener func(*Cloud, *api.Ports) error

// Cloud is what an Opener works with.
type Cloud struct {
	Getenv func(string) string
	Config aws.Config
	first  []func(context.Context) error
}

// Open opens ports. It makes no call: what is only told by one comes with Begin.
func (c *Cloud) Open(p *api.Ports, openers ...Opener) error {
	var errs []error
	for _, open := range openers {
		errs = append(errs, open(c, p))
	}
	return errors.Join(errs...)
}

// BeforeUse registers what must be done before a port is used.
func (c *Cloud) BeforeUse(f func(context.Context) error) { c.first = append(c.first, f) }

// Begin does what was registered with BeforeUse. The ports can be used when it
// has returned nil; until then it can be called again.
func (c *Cloud) Begin(ctx context.Context) error {
	for len(c.first) > 0 {
		if err := c.first[0](ctx); err != nil {
			return err
		}
		c.first = c.first[1:]
	}
	return nil
}

// Name reads a variable of the environment that must be set.
func (c *Cloud) Name(variable string) (string, error) {
	if v := c.Getenv(variable); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("%s is not set", variable)
}

// Endpoint is the address that the environment gives for a service, such as
// S3, in place of AWS's own: that of AWS_ENDPOINT_URL_S3, else that of
// AWS_ENDPOINT_URL, else nil.
func (c *Cloud) Endpoint(service string) *string {
	for _, variable := range []string{"AWS_ENDPOINT_URL_" + service, "AWS_ENDPOINT_URL"} {
		if v := c.Getenv(variable); v != "" {
			return &v
		}
	}
	return c.Config.BaseEndpoint
}
