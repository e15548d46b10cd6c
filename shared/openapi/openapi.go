// Package openapi has the description of the interface, openapi.json. It is written by
// hand, and tests check all responses against it. It also answers requests that no
// endpoint handles. Start reading with openapi.json.
package openapi

import (
	_ "embed"
	"encoding/json"
	"strings"
)

//go:embed openapi.json
var document string

// placeholder stands for the service's address in the document.
const placeholder = "http://127.0.0.1:8080/v1"

// For returns the document with a service's address.
func For(base string) string {
	quoted, _ := json.Marshal(base) // a string always marshals
	return strings.Replace(document, `"`+placeholder+`"`, string(quoted), 1)
}
