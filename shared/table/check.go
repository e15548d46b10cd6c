package table

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// The longest parts of a Key, in bytes.
const (
	maxPK = 2048
	maxSK = 1024
)

// CheckKeys returns an error for keys that one GetMany cannot have. Like all checks it is for
// backends: what one of them must reject, all reject.
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

// CheckQuery returns an error for an invalid query.
func CheckQuery(q Query) error {
	if q.Limit < 1 || q.Limit > MaxPage {
		return fmt.Errorf("table: limit %d is not from 1 to %d", q.Limit, MaxPage)
	}
	if len(q.After) > maxSK || !utf8.ValidString(q.After) {
		return errors.New("table: a query starts after an invalid sort key")
	}
	return checkPart("partition key", q.PK, maxPK)
}

// CheckOps returns an error for operations that one Write cannot have.
func CheckOps(ops ...Op) error {
	if len(ops) > MaxOps {
		return fmt.Errorf("table: %d operations in one write, the most is %d", len(ops), MaxOps)
	}
	for i, op := range ops {
		if err := checkOp(op); err != nil {
			return fmt.Errorf("table: operation %d on %q: %w", i, op.Key, err)
		}
		if slices.ContainsFunc(ops[:i], func(other Op) bool { return other.Key == op.Key }) {
			return fmt.Errorf("table: two operations on the key %q in one write", op.Key)
		}
	}
	return nil
}

// CheckUpdate returns an error for an operation that Table.Update cannot do.
func CheckUpdate(op Op) error {
	if op.Kind != KindUpdate {
		return errors.New("table: Table.Update needs an operation made by the function Update")
	}
	return CheckOps(op)
}

func checkKey(k Key) error {
	return cmp.Or(checkPart("partition key", k.PK, maxPK), checkPart("sort key", k.SK, maxSK))
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
	switch {
	case op.Kind < KindPut || op.Kind > KindCheck:
		return fmt.Errorf("unknown kind %d", op.Kind)
	case op.Kind != KindUpdate && len(op.Changes) > 0:
		return errors.New("only an update has changes")
	case op.Kind != KindUpdate && op.Kind != KindPut && !op.Expires.IsZero():
		return errors.New("only a put or an update has an expiry")
	case op.Kind == KindCheck && len(op.Conds) == 0:
		return errors.New("a check without conditions")
	case op.Kind == KindPut:
		return checkValue(op.Value)
	case op.Kind == KindUpdate:
		return checkChanges(op)
	}
	return nil
}

func checkChanges(op Op) error {
	if len(op.Changes) == 0 && op.Expires.IsZero() {
		return errors.New("an update without changes")
	}
	for i, c := range op.Changes {
		if err := checkAttr(c.Attr); err != nil {
			return err
		}
		if slices.ContainsFunc(op.Changes[:i], func(other Change) bool { return other.Attr == c.Attr }) {
			return fmt.Errorf("attribute %q changed twice", c.Attr)
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
	return t != nil && t.Kind() == reflect.Struct || scalar(t)
}

// scalar reports whether t is a string, a boolean or an integer. In the order of
// kinds, those from Bool to Uint64 are the booleans and integers.
func scalar(t reflect.Type) bool {
	return t != nil &&
		(t.Kind() == reflect.String || t.Kind() >= reflect.Bool && t.Kind() <= reflect.Uint64)
}

// checkValue checks only the outermost struct, whose attributes are stored beside
// the table's own.
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
	for i := range t.NumField() { // Fields would allocate, and every Put comes here
		f := t.Field(i)
		var err error
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			err = checkAttr(name)
		} else if f.Anonymous && f.Type.Kind() == reflect.Struct {
			err = checkFields(f.Type)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
