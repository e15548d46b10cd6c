package dynamo

import (
	"fmt"
	"maps"
	"reflect"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"ferry/shared/table"
)

// The attributes that belong to the table.
const (
	attrPK  = "pk"
	attrSK  = "sk"
	attrTTL = "ttl"
)

// attributes is an item in DynamoDB's form.
type attributes = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func keyAttributes(key table.Key) attributes {
	return attributes{attrPK: text(key.PK), attrSK: text(key.SK)}
}

func keyOf(item attributes) table.Key {
	return table.Key{PK: textOf(item[attrPK]), SK: textOf(item[attrSK])}
}

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// newItem returns a missing item if attrs is nil.
func newItem(key table.Key, attrs attributes) table.Item {
	if attrs == nil {
		return table.NewItem(key, nil, nil)
	}
	return table.NewItem(key, nil, func(_ table.Item, into any) error {
		return decode(attrs, into)
	})
}

// decode leaves out the table's own attributes. Otherwise an untagged field with
// such a name would get their value.
func decode(attrs attributes, into any) error {
	own := maps.Clone(attrs)
	delete(own, attrPK)
	delete(own, attrSK)
	delete(own, attrTTL)
	err := attributevalue.UnmarshalMapWithOptions(own, into, func(o *attributevalue.DecoderOptions) {
		o.TagKey = "json"
	})
	if err != nil {
		return fmt.Errorf("decoding item %q: %w", keyOf(attrs), err)
	}
	return nil
}

// encode returns a value with json tags as an attribute.
func encode(value any) (types.AttributeValue, error) {
	return attributevalue.MarshalWithOptions(value, func(o *attributevalue.EncoderOptions) {
		o.TagKey = "json"
	})
}

// encodeItem returns the item that a put stores.
func encodeItem(op table.Op) (attributes, error) {
	if err := storable(reflect.TypeOf(op.Value), map[reflect.Type]bool{}); err != nil {
		return nil, err
	}
	value, err := encode(op.Value)
	if err != nil {
		return nil, err
	}
	fields, ok := value.(*types.AttributeValueMemberM)
	if !ok {
		return nil, fmt.Errorf("a %T is not stored as attributes", op.Value)
	}
	item := fields.Value
	maps.Copy(item, keyAttributes(op.Key))
	if !op.Expires.IsZero() {
		item[attrTTL] = &types.AttributeValueMemberN{Value: strconv.FormatInt(
			op.Expires.Unix(),
			10,
		)}
	}
	return item, nil
}

// storable returns an error for a type that the encoder would store only in part,
// without an error. seen holds the structs visited, because types can be recursive.
func storable(t reflect.Type, seen map[reflect.Type]bool) error {
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return fmt.Errorf("a %s cannot be stored", t)
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return storable(t.Elem(), seen)
	case reflect.Struct:
		if seen[t] {
			return nil
		}
		seen[t] = true
		for f := range t.Fields() {
			if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
				continue
			}
			if err := storable(f.Type, seen); err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
	}
	return nil
}
