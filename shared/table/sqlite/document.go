package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"ferry/shared/table"
)

// document is an item's attributes, each as JSON; nil for a missing item.
type document map[string]json.RawMessage

// holds reports whether all conditions hold for an item as it is stored: doc
// is nil if it is missing.
func holds(conds []table.Cond, doc []byte) (bool, error) {
	var attrs document
	for _, c := range conds {
		switch c.Test {
		case table.TestExists, table.TestNotExists:
			if (doc != nil) != (c.Test == table.TestExists) {
				return false, nil
			}
			continue
		}
		if attrs == nil && doc != nil {
			if err := json.Unmarshal(doc, &attrs); err != nil {
				return false, err
			}
		}
		value, ok := attrs[c.Attr]
		if c.Test == table.TestEqual && !(ok && equal(value, c.Value.(json.RawMessage))) {
			return false, nil
		}
		if c.Test == table.TestAtMost && !atMost(value, ok, c.Value.(int64)) {
			return false, nil
		}
	}
	return true, nil
}

// equal compares two values in JSON. Of the types that a condition may have,
// only a string can be written in more than one way.
func equal(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if a[0] != '"' || b[0] != '"' {
		return false
	}
	var x, y string
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}

func atMost(value json.RawMessage, there bool, bound int64) bool {
	if !there {
		return 0 <= bound
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return err == nil && n <= bound
}

// change applies changes to an item as it is stored and returns what it becomes.
func change(changes []table.Change, doc []byte) ([]byte, error) {
	attrs := document{}
	if doc != nil {
		if err := json.Unmarshal(doc, &attrs); err != nil {
			return nil, err
		}
	}
	for _, c := range changes {
		if !c.Add {
			attrs[c.Attr] = c.Value.(json.RawMessage)
			continue
		}
		sum, err := add(attrs[c.Attr], c.Value.(int64))
		if err != nil {
			return nil, fmt.Errorf("adding to attribute %q: %w", c.Attr, err)
		}
		attrs[c.Attr] = sum
	}
	return json.Marshal(attrs)
}

func add(value json.RawMessage, n int64) (json.RawMessage, error) {
	var old int64
	if value != nil {
		var err error
		if old, err = strconv.ParseInt(string(value), 10, 64); err != nil {
			return nil, errors.New("it is not an integer")
		}
	}
	if n > 0 && old > math.MaxInt64-n || n < 0 && old < math.MinInt64-n {
		return nil, errors.New("the sum is too large")
	}
	return strconv.AppendInt(nil, old+n, 10), nil
}
