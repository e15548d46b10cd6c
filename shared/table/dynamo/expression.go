package dynamo

import (
	"fmt"
	"strconv"
	"strings"

	"ferry/shared/table"
)

// expression collects the names and values that the expressions of one
// operation refer to. Every name is a placeholder, because DynamoDB reserves
// hundreds of words and gives dots a meaning.
type expression struct {
	names  map[string]string
	values attributes
}

func (e *expression) name(attr string) string {
	if e.names == nil {
		e.names = map[string]string{}
	}
	for placeholder, known := range e.names {
		if known == attr {
			return placeholder
		}
	}
	placeholder := "#n" + strconv.Itoa(len(e.names))
	e.names[placeholder] = attr
	return placeholder
}

func (e *expression) value(v any) (string, error) {
	encoded, err := encode(v)
	if err != nil {
		return "", err
	}
	if e.values == nil {
		e.values = attributes{}
	}
	placeholder := ":v" + strconv.Itoa(len(e.values))
	e.values[placeholder] = encoded
	return placeholder, nil
}

// condition returns the condition expression, or nil if there is none.
func (e *expression) condition(conds []table.Cond) (*string, error) {
	if len(conds) == 0 {
		return nil, nil
	}
	parts := make([]string, len(conds))
	for i, c := range conds {
		part, err := e.test(c)
		if err != nil {
			return nil, fmt.Errorf("condition on attribute %q: %w", c.Attr, err)
		}
		parts[i] = part
	}
	all := strings.Join(parts, " AND ")
	return &all, nil
}

func (e *expression) test(c table.Cond) (string, error) {
	switch c.Test {
	case table.TestExists:
		return "attribute_exists(" + e.name(attrPK) + ")", nil
	case table.TestNotExists:
		return "attribute_not_exists(" + e.name(attrPK) + ")", nil
	}
	name := e.name(c.Attr)
	value, err := e.value(c.Value)
	if err != nil {
		return "", err
	}
	if c.Test == table.TestEqual {
		return name + " = " + value, nil
	}
	// A missing attribute counts as 0, which is at most n unless n is negative.
	if n, ok := c.Value.(int64); ok && n < 0 {
		return name + " <= " + value, nil
	}
	return "(attribute_not_exists(" + name + ") OR " + name + " <= " + value + ")", nil
}

// update returns the update expression for the changes and expiry of op.
func (e *expression) update(op table.Op) (*string, error) {
	var sets, adds []string
	for _, c := range op.Changes {
		value, err := e.value(c.Value)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", c.Attr, err)
		}
		if c.Add {
			adds = append(adds, e.name(c.Attr)+" "+value)
		} else {
			sets = append(sets, e.name(c.Attr)+" = "+value)
		}
	}
	if !op.Expires.IsZero() {
		value, err := e.value(op.Expires.Unix())
		if err != nil {
			return nil, err
		}
		sets = append(sets, e.name(attrTTL)+" = "+value)
	}
	update := clause("SET ", sets) + clause(" ADD ", adds)
	return &update, nil
}

func clause(keyword string, parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return keyword + strings.Join(parts, ", ")
}
