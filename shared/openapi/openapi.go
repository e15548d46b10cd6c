// Package openapi holds the description of the interface: openapi.json, written
// by hand and held to the responses by the contract tests. It also answers what no
// endpoint does. It may import api and envelope. Start reading with openapi.json.
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

// For returns the document for the service at an address.
func For(base string) string {
	quoted, _ := json.Marshal(base) // a string always marshals
	return strings.Replace(document, `"`+placeholder+`"`, string(quoted), 1)
}

// PathMethods tells the methods of each path template.
type PathMethods map[string][]string

// Paths reads the paths of the document, which a test holds to be valid.
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

// Template returns the path template that a path fits, "" if it fits none.
func (p PathMethods) Template(path string) string {
	for template := range p {
		if fits(template, path) {
			return template
		}
	}
	return ""
}

// Methods returns the methods of the template that a path fits, sorted; nil if
// it fits none.
func (p PathMethods) Methods(path string) []string {
	return slices.Sorted(slices.Values(p[p.Template(path)]))
}

func fits(template, path string) bool {
	t, s := strings.Split(template, "/"), strings.Split(path, "/")
	if len(t) != len(s) {
		return false
	}
	for i := range t {
		if strings.HasPrefix(t[i], "{") && s[i] != "" {
			continue
		}
		if t[i] != s[i] {
			return false
		}
	}
	return true
}
