// Package ssmkey opens the link key in the SSM Parameter Store.

package lambda

import (
	"context"
	"fmt"

	"ferry/shared/auth"

	"ferry/shared/api"
)

// Open reads the key from the parameter that FERRY_KEY_PARAMETER names, before
// it is used.
func LinkKey(c *Cloud, p *api.Ports) error {
	name, err := c.Name("FERRY_KEY_PARAMETER")
	if err != nil {
		return err
	}
	c.BeforeUse(func(ctx context.Context) error {
		text, err := newParameters(c).get(ctx, name)
		if err == nil {
			p.Key, err = auth.ParseLinkKey(text)
		}
		if err != nil {
			return fmt.Errorf("reading the link key: %w", err)
		}
		return nil
	})
	return nil
}
