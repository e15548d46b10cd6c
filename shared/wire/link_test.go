package wire_test

import (
	"encoding/json"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/wire"
)

// TestEachFieldOfADeliveryIsAnOption: a field that the list lacks would be lost on the way.
func TestEachFieldOfADeliveryIsAnOption(t *testing.T) {
	t.Parallel()
	var d wire.Delivery
	var names []string
	for _, o := range d.Options() {
		switch field := o.Field.(type) {
		case *string:
			*field = o.Name
		case *wire.Texts:
			*field = wire.Texts{o.Name, "", "another"}
		case *bool:
			*field = true
		case *int64:
			*field = 7
		case nil:
			expect.Equal(t, o.Name+" without a field", len(o.Texts()), 0)
			continue
		}
		names = append(names, o.Name)
	}
	text, err := json.Marshal(d)
	expect.NoErr(t, err)
	var fields map[string]any
	expect.NoErr(t, json.Unmarshal(text, &fields))
	for _, name := range names {
		if fields[name] == nil {
			t.Errorf("no field has the JSON name %s", name)
		}
	}
	expect.Equal(t, "fields", len(fields), len(names))
	q := d.Query()
	for _, o := range d.Options() {
		want := o.Texts()
		if o.Is&wire.Secret != 0 {
			want = nil
		}
		expect.Equal(t, "in the query "+o.Name, q[o.Name], want)
	}
	expect.Equal(t, "the query of nothing", len(wire.Delivery{}.Query()), 0)
	expect.Equal(t, "numbers in the query", q["c"], []string{"c", "another"})
}
