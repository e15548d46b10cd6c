package stack

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ferry/infra/template"
	"ferry/shared/boot/boottest"
)

// document is a template: template.yaml, or what SAM makes of it.
type document struct{ template.Template }

type object = template.Object

func read(t testing.TB) document {
	t.Helper()
	all, err := template.Read(filepath.Join(boottest.Root(t), "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return document{all}
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
		if parts := list(inner); k == "Fn::GetAtt" && len(parts) == 2 { // as JSON has it
			inner = fmt.Sprintf("%v.%v", parts[0], parts[1])
		}
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
func (d document) ofType(kind string) []string {
	var names []string
	for name, r := range d.Resources {
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
func (d document) functions() map[string]fn {
	all := map[string]fn{}
	for _, id := range d.ofType("AWS::Serverless::Function") {
		props, _ := at(d.Resources[id], "Properties").(object)
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
func (d document) policies(f fn) []statement {
	var all []statement
	for _, p := range list(at(d.Resources[f.ID+"Role"], "Properties", "Policies")) {
		all = append(all, statements(at(p, "PolicyDocument"))...)
	}
	return all
}
