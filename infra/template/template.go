// Package template reads template.yaml: what it says, with its short intrinsic
// functions written out, and what its values become in a stack with given
// parameters.
package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Object is a mapping of the template.
type Object = map[string]any

// Template is a template whose short intrinsic functions are written out: !Ref
// X is {Ref: X}, and !Sub X is {Fn::Sub: X}.
type Template struct {
	Parameters, Mappings, Conditions, Rules, Globals, Resources, Outputs Object
}

// Read reads a template with its loops written out, as the tests of infra/stack
// keep it beside the template. An older version has no loops.
func Read(path string) (Template, error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "infra", "stack", "testdata", "expanded.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = os.ReadFile(path); err == nil {
			return Parse(text)
		}
	}
	if err != nil {
		return Template{}, fmt.Errorf("reading the template: %w", err)
	}
	var kept struct{ Expanded json.RawMessage }
	if err := json.Unmarshal(text, &kept); err != nil {
		return Template{}, fmt.Errorf("reading the template: %w", err)
	}
	return Parse(kept.Expanded) // JSON is YAML
}

// Parse reads a template's text. A key that stands twice is an error.
func Parse(text []byte) (Template, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return Template{}, fmt.Errorf("reading the template: %w", err)
	}
	if len(doc.Content) == 0 {
		return Template{}, fmt.Errorf("reading the template: it is empty")
	}
	v, err := value(doc.Content[0])
	if err != nil {
		return Template{}, fmt.Errorf("reading the template: %w", err)
	}
	all, _ := v.(Object)
	section := func(name string) Object { o, _ := all[name].(Object); return o }
	return Template{
		section("Parameters"), section("Mappings"), section("Conditions"), section("Rules"), section("Globals"), section("Resources"), section("Outputs"),
	}, nil
}

func value(n *yaml.Node) (any, error) {
	name, intrinsic := strings.CutPrefix(n.Tag, "!")
	intrinsic = intrinsic && !strings.HasPrefix(name, "!")
	plain, err := plainValue(n, intrinsic)
	switch {
	case err != nil || !intrinsic:
		return plain, err
	case name == "Ref" || name == "Condition":
		return Object{name: plain}, nil
	}
	return Object{"Fn::" + name: plain}, nil
}

func plainValue(n *yaml.Node, text bool) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		return mapping(n)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			v, err := value(c)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	}
	if text {
		return n.Value, nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	return v, nil
}

func mapping(n *yaml.Node) (any, error) {
	o := Object{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if _, twice := o[key]; twice {
			return nil, fmt.Errorf("line %d: %s stands twice", n.Content[i].Line, key)
		}
		v, err := value(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		o[key] = v
	}
	return o, nil
}
