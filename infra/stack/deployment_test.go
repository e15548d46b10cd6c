package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const gradually = "Deployment=Canary10Percent5Minutes"

// alias returns the alias that gets a function's events.
func alias(function string) string { return "!Ref " + function + "Aliaslive" }

func TestEveryCallerOfAFunctionCallsItsAlias(t *testing.T) {
	t.Parallel()
	all := transformed(t)
	functions := all.ofType("AWS::Lambda::Function")
	var aliases []string
	for _, id := range functions {
		p := at(all.Resources[id+"Aliaslive"], "Properties")
		version, _, _ := strings.Cut(strings.TrimPrefix(show(at(p, "FunctionVersion")), "!GetAtt "), ".")
		if show(at(p, "FunctionName")) != "!Ref "+id || show(at(all.Resources[version], "Properties", "FunctionName")) != "!Ref "+id {
			t.Errorf("%s has the alias %v", id, p)
		}
		if at(all.Resources[version], "DeletionPolicy") != "Delete" {
			t.Errorf("old versions of %s are not deleted", id)
		}
		aliases = append(aliases, alias(id))
	}
	for caller, function := range callers(all) {
		if !slices.Contains(aliases, function) {
			t.Errorf("%s calls %s", caller, function)
		}
	}
}

// callers returns the resources that call a function, or allow calls.
func callers(all document) map[string]string {
	found := map[string]string{}
	for id, r := range all.Resources {
		p := at(r, "Properties")
		switch at(r, "Type") {
		case "AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping":
			found[id] = show(at(p, "FunctionName"))
		case "AWS::Lambda::EventInvokeConfig":
			found[id] = show(at(p, "FunctionName")) + "Alias" + show(at(p, "Qualifier"))
		case "AWS::Events::Rule":
			for _, target := range list(at(p, "Targets")) {
				found[id] = show(at(target, "Arn"))
			}
		case "AWS::SNS::Subscription":
			if at(p, "Protocol") == "lambda" {
				found[id] = show(at(p, "Endpoint"))
			}
		case "AWS::Logs::SubscriptionFilter":
			found[id] = show(at(p, "DestinationArn"))
		}
	}
	return found
}

func TestAGradualDeploymentEndsWithAnAlarm(t *testing.T) {
	t.Parallel()
	all, routed := made(t, gradually), read(t).functions()
	for _, id := range all.ofType("AWS::Lambda::Function") {
		if id == "LinkKey" { // only the creation of the stack calls it
			continue
		}
		update := at(all.Resources[id+"Aliaslive"], "UpdatePolicy", "CodeDeployLambdaAliasUpdate")
		p := at(all.Resources[id+"DeploymentGroup"], "Properties")
		want := []string{"!Ref " + id + "Alarm"}
		if len(routed[strings.ToLower(id)].events("HttpApi")) > 0 {
			want = append(want, "${AWS::StackName}-api")
		}
		var alarms []string
		for _, a := range list(at(p, "AlarmConfiguration", "Alarms")) {
			alarms = append(alarms, show(at(a, "Name")))
		}
		if show(at(update, "DeploymentGroupName")) != "!Ref "+id+"DeploymentGroup" || !slices.Equal(alarms, want) ||
			!strings.Contains(show(at(p, "AutoRollbackConfiguration", "Events")), "DEPLOYMENT_STOP_ON_ALARM") {
			t.Errorf("%s is rolled back on %v, want %v", id, alarms, want)
		}
	}
}

// TestEachChangedSettingMakesANewVersion: an alias leads to a version, which keeps its
// environment. SAM makes a new version when the template's text changes, CloudFormation
// when the version's description changes, and Lambda makes none of an unchanged
// function. So the description must repeat all of the environment that depends on
// parameters.
func TestEachChangedSettingMakesANewVersion(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	if at(tpl.Globals, "Function", "AutoPublishAliasAllProperties") != true {
		t.Error("a change of a function in the template makes no new version")
	}
	for _, f := range tpl.functions() {
		want := []string{"!Ref Metrics"} // stands for the stack's name, which never changes
		environment, _ := at(f.Props, "Environment", "Variables").(object)
		for _, name := range slices.Sorted(maps.Keys(environment)) {
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
	with, without := slices.Sorted(maps.Keys(tpl.Parameters)), slices.Sorted(maps.Keys(tpl.Parameters))
	without = slices.DeleteFunc(without, func(name string) bool { return name == "PublicUrl" })
	for _, names := range [][]string{with, without} {
		d := made(t, tpl.longest(names)...)
		for id, r := range d.Resources {
			if text := show(at(r, "Properties", "Description")); at(r, "Type") == "AWS::Lambda::Version" && len(text) > 256 {
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
	all := transformed(t, gradually)
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
func (d document) waitsFor(id string) []string {
	found := map[string]bool{}
	note := func(name string) {
		name, _, _ = strings.Cut(name, ".")
		if d.Resources[name] != nil && name != id {
			found[name] = true
		}
	}
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				look(e)
			}
		case object:
			for key, e := range v {
				switch key {
				case "Ref":
					note(show(e))
				case "Fn::GetAtt":
					note(show(list(e)[0]))
				case "Fn::Sub":
					for _, part := range strings.Split(show(list(e)[0]), "${")[1:] {
						name, _, _ := strings.Cut(part, "}")
						note(name)
					}
				case "DependsOn":
					for _, name := range list(e) {
						note(show(name))
					}
				}
				look(e)
			}
		}
	}
	look(d.Resources[id])
	return slices.Sorted(maps.Keys(found))
}
