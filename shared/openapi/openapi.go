// Package openapi has the description of the interface, openapi.json. It is written by
// hand, and tests check all responses against it. It also answers requests that no
// endpoint handles. Start reading with openapi.json.
package openapi

import (
	_ "embed"
	"encoding/json"
	"strings"

	"ferry/shared/notify/texts"
)

//go:embed openapi.json
var document string

// The document has these in place of the service's address, of all languages, and of the pattern
// for their tags.
const (
	anAddress = `"http://127.0.0.1:8080/v1"`
	aLanguage = `["en"]`
	aPattern  = `([eE][nN])`
)

// For returns the document with a service's address and the languages.
func For(base string) string {
	quoted, _ := json.Marshal(base) // a string always marshals
	tags := texts.Tags()
	languages := `["` + strings.Join(tags, `", "`) + `"]`
	for i, tag := range tags {
		tags[i] = inAnyCase(tag)
	}
	pattern := "(" + strings.Join(tags, "|") + ")"
	return strings.NewReplacer(
		anAddress,
		string(quoted),
		aLanguage,
		languages,
		aPattern,
		pattern,
	).
		Replace(document)
}

// inAnyCase returns a pattern for letters in both cases.
func inAnyCase(letters string) (pattern string) {
	for _, letter := range strings.Split(letters, "") {
		pattern += "[" + letter + strings.ToUpper(letter) + "]"
	}
	return pattern
}
