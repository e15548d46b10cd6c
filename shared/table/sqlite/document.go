package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"

	"ferry/shared/table"
)

// document is an item's attributes, each as JSON. It is nil for a missing item.
type document map[string]json.RawMessage

// holds reports whether all conditions hold for a stored item.
func holds(conds []table.Cond, item *stored) (bool, error) {
	for _, c := range conds {
		if c.Test == table.TestExists || c.Test == table.TestNotExists {
			if (item.doc != nil) != (c.Test == table.TestExists) {
				return false, nil
			}
			continue
		}
		if err := item.decode(); err != nil {
			return false, err
		}
		value := item.attrs[c.Attr]
		if c.Test == table.TestEqual &&
			(value == nil || !equal(value, c.Value.(json.RawMessage))) {
			return false, nil
		}
		if c.Test == table.TestAtMost {
			if n, err := integer(value); err != nil || n > c.Value.(int64) {
				return false, nil
			}
		}
	}
	return true, nil
}

// equal compares two values in JSON. Of the types that a condition may have,
// only strings can be written in several ways.
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

// integer reads an attribute. A missing one counts as 0.
func integer(value json.RawMessage) (int64, error) {
	if value == nil {
		return 0, nil
	}
	return strconv.ParseInt(string(value), 10, 64)
}

// decode fills in the item's attributes, if they are not there.
func (s *stored) decode() error {
	if s.attrs != nil || s.doc == nil {
		return nil
	}
	if err := json.Unmarshal(s.doc, &s.attrs); err != nil {
		return fmt.Errorf("%w: %w", table.ErrUnreadable, err)
	}
	return nil
}

// change returns the item with changes applied.
func (s *stored) change(changes []table.Change) (after stored, err error) {
	if err := s.decode(); err != nil {
		return after, err
	}
	attrs := document{}
	maps.Copy(attrs, s.attrs)
	for _, c := range changes {
		if !c.Add {
			attrs[c.Attr] = c.Value.(json.RawMessage)
			continue
		}
		sum, err := add(attrs[c.Attr], c.Value.(int64))
		if err != nil {
			return after, fmt.Errorf("adding to attribute %q: %w", c.Attr, err)
		}
		attrs[c.Attr] = sum
	}
	after.attrs, after.ttl = attrs, s.ttl
	after.doc, err = json.Marshal(attrs)
	return after, err
}

func add(value json.RawMessage, n int64) (json.RawMessage, error) {
	old, err := integer(value)
	if err != nil {
		return nil, errors.New("it is not an integer")
	}
	if n > 0 && old > math.MaxInt64-n || n < 0 && old < math.MinInt64-n {
		return nil, errors.New("the sum is too large")
	}
	return strconv.AppendInt(nil, old+n, 10), nil
}
