// Package ssmkey opens the link key in the SSM Parameter Store.
package ssmkey

import (
	"context"
	"fmt"

	"ferry/shared/boot/port"
	"ferry/shared/endpoint"
	"ferry/shared/links"
)

// Open reads the key from the parameter that FERRY_KEY_PARAMETER names, before
// it is used.
func Open(c *port.Cloud, p *endpoint.Ports) error {
	name, err := c.Name("FERRY_KEY_PARAMETER")
	if err != nil {
		return err
	}
	c.BeforeUse(func(ctx context.Context) error {
		text, err := newParameters(c).get(ctx, name)
		if err == nil {
			p.Key, err = links.ParseKey(text)
		}
		if err != nil {
			return fmt.Errorf("reading the link key: %w", err)
		}
		return nil
	})
	return nil
}
