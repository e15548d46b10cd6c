package wire_test

import (
	"encoding/json"
	"slices"
	"testing"

	"ferry/shared/wire"
)

func TestSeveralTextsAreAnArray(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		texts wire.Texts
		json  string
	}{{nil, `""`}, {wire.Texts{"a"}, `"a"`}, {wire.Texts{"a", "b"}, `["a","b"]`}} {
		text, err := json.Marshal(k.texts)
		if err != nil || string(text) != k.json {
			t.Errorf("%q is %s, %v", k.texts, text, err)
		}
	}
	for text, want := range map[string]wire.Texts{
		`"a"`:       {"a"},
		`["a","b"]`: {"a", "b"},
		`[]`:        {},
		`["a"]`:     {"a"},
		`""`:        {""},
		`null`:      {""},
	} {
		var got wire.Texts
		if err := json.Unmarshal([]byte(text), &got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %q, %v", text, got, err)
		}
	}
	var last struct{ M wire.Texts }
	if err := json.Unmarshal([]byte(`{"m":["a","b"],"m":["c","d"]}`), &last); err != nil ||
		!slices.Equal(last.M, wire.Texts{"c", "d"}) {
		t.Errorf("of a field that comes twice the texts are %q, %v", last.M, err)
	}
	for _, text := range []string{"1", "{}", "[1]", `["a",["b"]]`, `[null]`, `["a",null]`} {
		var got wire.Texts
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is %q", text, got)
		}
	}
}
