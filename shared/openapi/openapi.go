// Package openapi has the description of the interface, openapi.json. It is written by
// hand, and tests check all responses against it. It also answers requests that no
// endpoint handles. It may import api and envelope. Start reading with openapi.json.
package openapi

import (
	_ "embed"
	"encoding/json"
	"slices"
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

// PathMethods maps each path template to its methods.
type PathMethods map[string][]string

// Paths returns the paths in the document. A test checks that they can be read.
func Paths() PathMethods {
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(document), &doc); err != nil {
		panic("openapi.json: " + err.Error())
	}
	all := PathMethods{}
	for path, item := range doc.Paths {
		for _, method := range []string{"get", "head", "post", "put", "delete"} {
			if _, ok := item[method]; ok {
				all[path] = append(all[path], strings.ToUpper(method))
			}
		}
	}
	return all
}

// Template returns the path template that matches a path, or "".
func (p PathMethods) Template(path string) string {
	for template := range p {
		if fits(template, path) {
			return template
		}
	}
	return ""
}

// Methods returns the sorted methods of the template that matches a path, or nil.
func (p PathMethods) Methods(path string) []string {
	return slices.Sorted(slices.Values(p[p.Template(path)]))
}

func fits(template, path string) bool {
	return slices.EqualFunc(strings.Split(template, "/"), strings.Split(path, "/"), func(t, s string) bool {
		return t == s || strings.HasPrefix(t, "{") && s != ""
	})
}
