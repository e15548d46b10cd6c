package dynamo

import (
	"fmt"
	"strconv"
	"strings"

	"ferry/shared/table"
)

// prepared is an operation in DynamoDB's form. Its expressions refer to names and
// values by placeholders, because DynamoDB reserves hundreds of words and gives
// dots a meaning.
type prepared struct {
	key, item         attributes // item is that of a put
	condition, update *string    // nil if there is none
	names             map[string]string
	values            attributes
}

func prepare(op table.Op) (p prepared, err error) {
	p.key = keyAttributes(op.Key)
	if p.condition, err = p.conditions(op.Conds); err != nil {
		return p, err
	}
	switch op.Kind {
	case table.KindPut:
		p.item, err = encodeItem(op)
	case table.KindUpdate:
		p.update, err = p.changes(op)
	}
	if err != nil {
		return p, fmt.Errorf("encoding item %q: %w", op.Key, err)
	}
	return p, nil
}

func (p *prepared) name(attr string) string {
	if p.names == nil {
		p.names = map[string]string{}
	}
	for placeholder, known := range p.names {
		if known == attr {
			return placeholder
		}
	}
	placeholder := "#n" + strconv.Itoa(len(p.names))
	p.names[placeholder] = attr
	return placeholder
}

func (p *prepared) value(v any) (string, error) {
	encoded, err := encode(v)
	if err != nil {
		return "", err
	}
	if p.values == nil {
		p.values = attributes{}
	}
	placeholder := ":v" + strconv.Itoa(len(p.values))
	p.values[placeholder] = encoded
	return placeholder, nil
}

// conditions returns the condition expression, or nil if there are no conditions.
func (p *prepared) conditions(conds []table.Cond) (*string, error) {
	if len(conds) == 0 {
		return nil, nil
	}
	var parts []string
	for _, c := range conds {
		part, err := p.test(c)
		if err != nil {
			return nil, fmt.Errorf("condition on attribute %q: %w", c.Attr, err)
		}
		parts = append(parts, part)
	}
	return new(strings.Join(parts, " AND ")), nil
}

func (p *prepared) test(c table.Cond) (string, error) {
	switch c.Test {
	case table.TestExists:
		return "attribute_exists(" + p.name(attrPK) + ")", nil
	case table.TestNotExists:
		return "attribute_not_exists(" + p.name(attrPK) + ")", nil
	}
	name := p.name(c.Attr)
	value, err := p.value(c.Value)
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

// changes returns the update expression for the changes and expiry of op.
func (p *prepared) changes(op table.Op) (*string, error) {
	if !op.Expires.IsZero() {
		op = op.Set(attrTTL, op.Expires.Unix())
	}
	var sets, adds []string
	for _, c := range op.Changes {
		value, err := p.value(c.Value)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", c.Attr, err)
		}
		if c.Add {
			adds = append(adds, p.name(c.Attr)+" "+value)
		} else {
			sets = append(sets, p.name(c.Attr)+" = "+value)
		}
	}
	return new(clause("SET ", sets) + clause(" ADD ", adds)), nil
}

func clause(keyword string, parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return keyword + strings.Join(parts, ", ")
}
