package stack

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestEachChangedSettingMakesANewVersion: an alias leads to a version, which keeps its
// environment. SAM makes a new version when the template's text changes, CloudFormation
// when the version's description changes, and Lambda makes none of an unchanged
// function. So the description must repeat all of the environment that depends on
// parameters, or have a digest of it.
func TestEachChangedSettingMakesANewVersion(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	if at(tpl.Globals, "Function", "AutoPublishAliasAllProperties") != true {
		t.Error("a change of a function in the template makes no new version")
	}
	for _, f := range tpl.functions() {
		want := []string{"!Ref Metrics"} // stands for the stack's name, which never changes
		environment, _ := at(f.Props, "Environment", "Variables").(object)
		digest, _ := at(tpl.Resources[f.ID+"Settings"], "Properties", "Of").(object)
		if digest != nil {
			want = []string{"!Sub ${Metrics} ${" + f.ID + "Settings.Digest}"}
		}
		for _, name := range slices.Sorted(maps.Keys(environment)) {
			if show(environment[name]) == show(digest[name]) {
				continue
			}
			if len(tpl.parametersIn(environment[name])) > 0 {
				want = append(want, show(environment[name]))
			}
		}
		got := []string{show(f.Props["VersionDescription"])}
		if join := list(at(f.Props["VersionDescription"], "Fn::Join")); len(join) == 2 {
			got = texts(join[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("a version of %s is described by\n%v, want\n%v", f.ID, got, want)
		}
	}
}

func TestTheDescriptionOfAVersionIsNeverTooLong(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	with := slices.Sorted(maps.Keys(tpl.Parameters))
	without := slices.DeleteFunc(slices.Clone(with), func(name string) bool { return name == "PublicUrl" })
	for _, names := range [][]string{with, without} {
		d := made(t, tpl.longest(names)...)
		for id, r := range d.Resources {
			if text := show(at(r, "Properties", "Description")); at(r, "Type") == "AWS::Lambda::Version" &&
				len(text) > 256 {
				t.Errorf("%s is described by up to %d characters", id, len(text))
			}
		}
	}
}

// parametersIn returns the parameters that a value depends on, directly or through a condition.
func (d document) parametersIn(v any) []string {
	var found []string
	notInName := func(r rune) bool { return !unicode.IsLetter(r) }
	for _, name := range strings.FieldsFunc(fmt.Sprint(v), notInName) {
		if d.Parameters[name] != nil {
			found = append(found, name)
		}
		if d.Conditions[name] != nil {
			found = append(found, d.parametersIn(d.Conditions[name])...)
		}
	}
	return found
}

// longest gives parameters their longest allowed values.
func (d document) longest(names []string) (all []string) {
	for _, name := range names {
		p := d.Parameters[name]
		value := show(at(p, "MaxValue"))
		if most, ok := at(p, "MaxLength").(int); ok {
			value = strings.Repeat("x", most)
		}
		if allowed := texts(at(p, "AllowedValues")); len(allowed) > 0 {
			value = slices.MaxFunc(allowed, func(a, b string) int { return len(a) - len(b) })
		}
		all = append(all, name+"="+value)
	}
	return all
}

// TestNoResourceDependsOnItself: CloudFormation refuses circular dependencies. A gradual
// deployment makes long chains: the API waits for aliases, these for their
// deployment groups, and those for alarms.
func TestNoResourceDependsOnItself(t *testing.T) {
	t.Parallel()
	all := transformed(t, "Deployment=Canary10Percent5Minutes")
	state := map[string]int{} // 1: being visited, 2: done
	var visit func(id string, way []string)
	visit = func(id string, way []string) {
		way = append(way, id)
		if state[id] == 1 {
			t.Errorf("a cycle: %v", way)
		}
		if state[id] > 0 {
			return
		}
		state[id] = 1
		for _, next := range all.waitsFor(id) {
			visit(next, way)
		}
		state[id] = 2
	}
	for _, id := range slices.Sorted(maps.Keys(all.Resources)) {
		visit(id, nil)
	}
}

// waitsFor returns the resources that a resource refers to.
func (d document) waitsFor(id string) (all []string) {
	r := d.Resources[id]
	for _, ref := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(compact(r), -1) {
		all = append(all, ref[1])
	}
	all = append(all, texts(at(r, "DependsOn"))...)
	return slices.DeleteFunc(all, func(name string) bool { return d.Resources[name] == nil || name == id })
}
