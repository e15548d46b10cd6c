package lambda

import (
	"context"
	"errors"
	"time"

	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/service"
)

// keyMemory is how long a function caches the versions of the link key. Together with the
// wait for an answer, and the second for which links are cached, that makes a minute.
const keyMemory = 55 * time.Second

// LinkKey reads the link key from the parameter that FERRY_KEY_PARAMETER names, before
// its first use.
func LinkKey(c *Cloud, p *service.Ports) {
	name := c.Name("FERRY_KEY_PARAMETER")
	c.openKey(p, keys.Store{
		Read: func(ctx context.Context) (string, error) {
			var answer struct{ Parameter struct{ Value string } }
			err := parameterStore(c).call(ctx, "GetParameter", fields{
				"Name":           name,
				"WithDecryption": true,
			}, &answer)
			return answer.Parameter.Value, fault.Wrap(err, "asking for parameter "+name)
		},
		Write: func(ctx context.Context, text string) error {
			return putKey(ctx, parameterStore(c), name, text, true)
		},
	})
}

// KeyVersions reads from the table which versions of the key are revoked, for a function
// that opens links but makes none.
func KeyVersions(c *Cloud, p *service.Ports) {
	c.openKey(p, keys.Store{
		Read: func(ctx context.Context) (string, error) {
			return keys.PublicVersions(ctx, p.Table)
		},
	})
}

func (c *Cloud) openKey(p *service.Ports, s keys.Store) {
	s.Memory = keyMemory
	c.First(func(ctx context.Context) (err error) {
		p.Key, err = keys.Open(ctx, s, p.Now, p.Log)
		return fault.Wrap(err, "reading the link key")
	})
}

func parameterStore(c *Cloud) remote { return newRemote(c, "ssm", "AmazonSSM.", "1.1") }

func putKey(ctx context.Context, s remote, name, key string, overwrite bool) error {
	return s.call(ctx, "PutParameter", fields{
		"Name":        name,
		"Value":       key,
		"Type":        "SecureString",
		"Overwrite":   overwrite,
		"Description": "Key of Ferry's download links. With another one all links that were sent are dead.",
	}, &struct{}{})
}

// StoreLinkKey stores a link key under a name, unless there is one already. The caller's
// role may be only seconds old.
func StoreLinkKey(ctx context.Context, c *Cloud, name, key string) error {
	s := parameterStore(c)
	s.denied = whileSpreading
	err := putKey(ctx, s, name, key, false)
	if failed, ok := errors.AsType[*serviceError](err); ok &&
		failed.kind == "ParameterAlreadyExists" {
		return nil
	}
	return fault.Wrap(err, "storing the link key")
}

// ProtectTable turns a table's deletion protection on or off. The caller's role may be
// only seconds old.
func ProtectTable(ctx context.Context, c *Cloud, name string, on bool) error {
	s := newRemote(c, "dynamodb", "DynamoDB_20120810.", "1.0")
	s.denied = whileSpreading
	var now struct {
		Table struct{ DeletionProtectionEnabled bool }
	}
	err := s.call(ctx, "DescribeTable", fields{"TableName": name}, &now)
	if err == nil && now.Table.DeletionProtectionEnabled != on {
		err = s.call(ctx, "UpdateTable", fields{
			"TableName":                 name,
			"DeletionProtectionEnabled": on,
		}, &struct{}{})
	}
	return fault.Wrap(err, "changing the protection of table "+name)
}
