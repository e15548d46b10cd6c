package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"ferry/shared/boot/boottest"
)

// template is template.yaml, its short intrinsic functions written out: !Ref X
// is {Ref: X}.
type template struct {
	Parameters, Conditions, Resources, Globals, Outputs object
}

type object = map[string]any

func read(t testing.TB) template {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(boottest.Root(t), "template.yaml"))
	if err != nil {
		t.Fatalf("reading the template: %v", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatalf("template.yaml: %v", err)
	}
	all, ok := value(t, doc.Content[0]).(object)
	if !ok {
		t.Fatal("template.yaml is no mapping")
	}
	section := func(name string) object { o, _ := all[name].(object); return o }
	return template{section("Parameters"), section("Conditions"), section("Resources"), section("Globals"), section("Outputs")}
}

func value(t testing.TB, n *yaml.Node) any {
	t.Helper()
	name, intrinsic := strings.CutPrefix(n.Tag, "!")
	intrinsic = intrinsic && !strings.HasPrefix(name, "!")
	plain := plainValue(t, n, intrinsic)
	switch {
	case !intrinsic:
		return plain
	case name == "Ref" || name == "Condition":
		return object{name: plain}
	}
	return object{"Fn::" + name: plain}
}

func plainValue(t testing.TB, n *yaml.Node, text bool) any {
	t.Helper()
	switch n.Kind {
	case yaml.MappingNode:
		o := object{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if _, twice := o[key]; twice {
				t.Errorf("line %d: %s stands twice", n.Content[i].Line, key)
			}
			o[key] = value(t, n.Content[i+1])
		}
		return o
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			list[i] = value(t, c)
		}
		return list
	}
	if text {
		return n.Value
	}
	var v any
	if err := n.Decode(&v); err != nil {
		t.Fatalf("line %d: %v", n.Line, err)
	}
	return v
}

// at follows keys into nested mappings; nil if there is nothing.
func at(v any, keys ...string) any {
	for _, k := range keys {
		o, _ := v.(object)
		v = o[k]
	}
	return v
}

// show writes a value on one line, intrinsics as in the template.
func show(v any) string {
	o, ok := v.(object)
	if !ok || len(o) != 1 {
		return fmt.Sprint(v)
	}
	for k, inner := range o {
		if k == "Ref" || strings.HasPrefix(k, "Fn::") {
			return "!" + strings.TrimPrefix(k, "Fn::") + " " + show(inner)
		}
	}
	return fmt.Sprint(v)
}

// list makes a list of what may be a single value.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

// ofType returns the names of the resources of a type, sorted.
func (t template) ofType(kind string) []string {
	var names []string
	for name, r := range t.Resources {
		if at(r, "Type") == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// fn is a function of the template.
type fn struct {
	ID    string // in the template
	Name  string // of its directory and its fixture
	Props object
}

// functions returns the functions of the template by name.
func (t template) functions() map[string]fn {
	all := map[string]fn{}
	for _, id := range t.ofType("AWS::Serverless::Function") {
		props, _ := at(t.Resources[id], "Properties").(object)
		all[strings.ToLower(id)] = fn{ID: id, Name: strings.ToLower(id), Props: props}
	}
	return all
}

// events returns the properties of the function's events of a type.
func (f fn) events(kind string) []object {
	var found []object
	events, _ := f.Props["Events"].(object)
	for _, e := range events {
		if at(e, "Type") == kind {
			props, _ := at(e, "Properties").(object)
			found = append(found, props)
		}
	}
	return found
}

// statement is one of a policy.
type statement struct {
	Effect    string
	Actions   []string
	Resources []string
	Not       bool     // it is for all but these
	Keys      []string // partition keys of the table that it is for; nil is any
	Condition object
}

func statements(policy any) []statement {
	var all []statement
	for _, s := range list(at(policy, "Statement")) {
		st := statement{Effect: show(at(s, "Effect"))}
		for _, a := range list(at(s, "Action")) {
			st.Actions = append(st.Actions, show(a))
		}
		st.Not = at(s, "NotResource") != nil
		for _, r := range append(list(at(s, "Resource")), list(at(s, "NotResource"))...) {
			st.Resources = append(st.Resources, show(r))
		}
		st.Condition, _ = at(s, "Condition").(object)
		for _, k := range list(at(st.Condition, "ForAllValues:StringLike", "dynamodb:LeadingKeys")) {
			st.Keys = append(st.Keys, show(k))
		}
		all = append(all, st)
	}
	return all
}

// policies returns the statements of a function's role.
func (t template) policies(f fn) []statement {
	var all []statement
	for _, p := range list(at(t.Resources[f.ID+"Role"], "Properties", "Policies")) {
		all = append(all, statements(at(p, "PolicyDocument"))...)
	}
	return all
}
