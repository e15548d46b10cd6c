package lambda

import (
	"context"

	"ferry/shared/fault"
)

// ProtectTable turns a table's deletion protection on or off. The caller's role may be
// only seconds old.
func ProtectTable(ctx context.Context, c *Cloud, name string, on bool) error {
	type table struct {
		TableName                 string
		DeletionProtectionEnabled bool
	}
	s := newService(c, "dynamodb", "DynamoDB_20120810.", "1.0")
	s.denied = whileSpreading
	var now struct{ Table table }
	err := s.call(ctx, "DescribeTable", struct{ TableName string }{name}, &now)
	if err == nil && now.Table.DeletionProtectionEnabled != on {
		err = s.call(ctx, "UpdateTable", table{name, on}, &struct{}{})
	}
	return fault.Wrap(err, "changing the protection of table "+name)
}
