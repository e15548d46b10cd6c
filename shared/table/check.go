package table

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Longest parts of a Key, in bytes.
const (
	maxPK = 2048
	maxSK = 1024
)

// CheckKeys returns an error if the keys are not fit for one GetMany. It is
// for backends, like all the checks: a call that one of them would reject is
// rejected by each.
func CheckKeys(keys ...Key) error {
	if len(keys) > MaxKeys {
		return fmt.Errorf("table: %d keys in one call, the most is %d", len(keys), MaxKeys)
	}
	for _, k := range keys {
		if err := checkKey(k); err != nil {
			return err
		}
	}
	return nil
}

// CheckQuery returns an error for a query that no backend may answer.
func CheckQuery(q Query) error {
	if q.Limit < 1 || q.Limit > MaxPage {
		return fmt.Errorf("table: limit %d is not from 1 to %d", q.Limit, MaxPage)
	}
	if len(q.After) > maxSK || !utf8.ValidString(q.After) {
		return errors.New("table: a query starts after something that is no sort key")
	}
	return checkPart("partition key", q.PK, maxPK)
}

// CheckOps returns an error if the operations are not fit for one Write.
func CheckOps(ops ...Op) error {
	if len(ops) > MaxOps {
		return fmt.Errorf("table: %d operations in one write, the most is %d", len(ops), MaxOps)
	}
	for i, op := range ops {
		if err := checkOp(op); err != nil {
			return fmt.Errorf("table: operation %d on %q: %w", i, op.Key, err)
		}
		for _, other := range ops[:i] {
			if other.Key == op.Key {
				return fmt.Errorf("table: operations on the same key %q in one write", op.Key)
			}
		}
	}
	return nil
}

// CheckUpdate returns an error if op is not fit for Table.Update.
func CheckUpdate(op Op) error {
	if op.Kind != KindUpdate {
		return errors.New("table: the operation of an update was not made by the function Update")
	}
	return CheckOps(op)
}

func checkKey(k Key) error {
	if err := checkPart("partition key", k.PK, maxPK); err != nil {
		return err
	}
	return checkPart("sort key", k.SK, maxSK)
}

func checkPart(what, s string, longest int) error {
	switch {
	case s == "":
		return fmt.Errorf("table: empty %s", what)
	case len(s) > longest:
		return fmt.Errorf("table: %s of %d bytes, the most is %d", what, len(s), longest)
	case !utf8.ValidString(s):
		return fmt.Errorf("table: %s is not UTF-8", what)
	}
	return nil
}

func checkOp(op Op) error {
	if err := checkKey(op.Key); err != nil {
		return err
	}
	for _, c := range op.Conds {
		if err := checkCond(c); err != nil {
			return err
		}
	}
	if op.Kind != KindUpdate && len(op.Changes) > 0 {
		return errors.New("only an update has changes")
	}
	if op.Kind != KindUpdate && op.Kind != KindPut && !op.Expires.IsZero() {
		return errors.New("only a put or an update has an expiry")
	}
	switch op.Kind {
	case KindPut:
		return checkValue(op.Value)
	case KindUpdate:
		return checkChanges(op)
	case KindDelete:
		return nil
	case KindCheck:
		if len(op.Conds) == 0 {
			return errors.New("a check without conditions")
		}
		return nil
	}
	return fmt.Errorf("unknown kind %d", op.Kind)
}

func checkChanges(op Op) error {
	if len(op.Changes) == 0 && op.Expires.IsZero() {
		return errors.New("an update without changes")
	}
	for i, c := range op.Changes {
		if err := checkAttr(c.Attr); err != nil {
			return err
		}
		for _, other := range op.Changes[:i] {
			if other.Attr == c.Attr {
				return fmt.Errorf("attribute %q changed twice", c.Attr)
			}
		}
		if _, ok := c.Value.(int64); c.Add && !ok {
			return fmt.Errorf("adding a %T to attribute %q", c.Value, c.Attr)
		}
		if !settable(c.Value) {
			return fmt.Errorf("setting attribute %q to a %T", c.Attr, c.Value)
		}
	}
	return nil
}

func checkCond(c Cond) error {
	switch c.Test {
	case TestExists, TestNotExists:
		return nil
	case TestEqual:
		if !scalar(reflect.TypeOf(c.Value)) {
			return fmt.Errorf("comparing attribute %q with a %T", c.Attr, c.Value)
		}
	case TestAtMost:
		if _, ok := c.Value.(int64); !ok {
			return fmt.Errorf("bounding attribute %q by a %T", c.Attr, c.Value)
		}
	default:
		return fmt.Errorf("unknown test %d", c.Test)
	}
	return checkAttr(c.Attr)
}

func checkAttr(name string) error {
	switch name {
	case "":
		return errors.New("an attribute without a name")
	case "pk", "sk", "ttl":
		return fmt.Errorf("attribute %q belongs to the table", name)
	}
	return nil
}

func settable(v any) bool {
	t := reflect.TypeOf(v)
	if t != nil && t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return scalar(t)
}

func scalar(t reflect.Type) bool {
	if t == nil {
		return false
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

// checkValue looks at the outermost struct alone: only its attributes lie
// beside the table's own.
func checkValue(v any) error {
	val := reflect.ValueOf(v)
	if val.Kind() == reflect.Pointer && !val.IsNil() {
		val = val.Elem()
	}
	if val.Kind() != reflect.Struct {
		return fmt.Errorf("a %T is not a struct", v)
	}
	return checkFields(val.Type())
}

func checkFields(t reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "":
			if err := checkAttr(name); err != nil {
				return err
			}
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			if err := checkFields(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}
