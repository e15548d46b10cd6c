package notify

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

func TestEachLanguageHasEveryPhrase(t *testing.T) {
	t.Parallel()
	files, err := texts.ReadDir("phrases")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := texts.ReadFile("phrases/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		var p phrases
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&p); err != nil || p.Lang+".json" != file.Name() {
			t.Errorf("%s: %q, %v", file.Name(), p.Lang, err)
		}
		for field, value := range reflect.ValueOf(p).Fields() {
			if value.IsZero() {
				t.Errorf("%s has no %s", file.Name(), field.Name)
			}
		}
	}
}
