package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"ferry/infra/template"
)

const gradually = "Deployment=Canary10Percent5Minutes"

// alias is what brings a function its events.
func alias(function string) string { return "!Ref " + function + "Aliaslive" }

func TestWhateverCallsAFunctionCallsItsAlias(t *testing.T) {
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
			t.Errorf("old versions of %s stay", id)
		}
		aliases = append(aliases, alias(id))
	}
	for caller, function := range callers(all) {
		if !slices.Contains(aliases, function) {
			t.Errorf("%s calls %s", caller, function)
		}
	}
}

// callers are the resources that call a function, or let it be called.
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

func TestADeploymentIsGradualOnlyIfAsked(t *testing.T) {
	t.Parallel()
	all := transformed(t)
	for id, r := range all.Resources {
		if strings.HasPrefix(show(at(r, "Type")), "AWS::CodeDeploy::") || at(r, "UpdatePolicy") != nil || id == "CodeDeployServiceRole" {
			t.Errorf("there is %s", id)
		}
	}
}

func TestAGradualDeploymentEndsWithAnAlarm(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"Canary10Percent5Minutes", "Linear10PercentEvery1Minute"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			all := transformed(t, "Deployment="+how)
			routed := read(t).functions()
			for _, id := range all.ofType("AWS::Lambda::Function") {
				if id == "LinkKey" { // whom nothing calls but the making of the stack
					continue
				}
				update := at(all.Resources[id+"Aliaslive"], "UpdatePolicy", "CodeDeployLambdaAliasUpdate")
				if got := show(at(update, "DeploymentGroupName")); got != "!Ref "+id+"DeploymentGroup" {
					t.Errorf("%s is deployed by %s", id, got)
				}
				p := at(all.Resources[id+"DeploymentGroup"], "Properties")
				if got := show(at(p, "DeploymentConfigName")); got != "!Sub [CodeDeployDefault.Lambda${ConfigName} map[ConfigName:"+how+"]]" {
					t.Errorf("%s is deployed as by %s", id, got)
				}
				want := []string{"!If [IsWatched map[Ref:" + id + "Alarm] map[Ref:AWS::NoValue]]"}
				if len(routed[strings.ToLower(id)].events("HttpApi")) > 0 {
					want = append(want, "!Sub ${AWS::StackName}-api")
				}
				var alarms []string
				for _, a := range list(at(p, "AlarmConfiguration", "Alarms")) {
					alarms = append(alarms, show(at(a, "Name")))
				}
				if !slices.Equal(alarms, want) || at(p, "AlarmConfiguration", "Enabled") != true {
					t.Errorf("%s goes back at %v, want %v", id, alarms, want)
				}
				if events := show(at(p, "AutoRollbackConfiguration", "Events")); at(p, "AutoRollbackConfiguration", "Enabled") != true || !strings.Contains(events, "DEPLOYMENT_STOP_ON_ALARM") {
					t.Errorf("%s goes back at %s", id, events)
				}
			}
		})
	}
}

// TestTheAlarmsOfADeploymentNeedNoAddress resolves the alarms' conditions.
func TestTheAlarmsOfADeploymentNeedNoAddress(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	watch := []string{"ApiAlarm"}
	for _, f := range tpl.functions() {
		watch = append(watch, f.ID+"Alarm")
	}
	for _, c := range []struct {
		name, how, email string
		want             []string
		actions          bool
	}{
		{"no alarm by default", "AllAtOnce", "", nil, false},
		{"those that end a deployment", "Canary10Percent5Minutes", "", watch, false},
		{"all for an address", "AllAtOnce", "ops@example.com", tpl.ofType("AWS::CloudWatch::Alarm"), true},
		{"all for an address and a deployment", "Canary10Percent5Minutes", "ops@example.com", tpl.ofType("AWS::CloudWatch::Alarm"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := template.Stack{Template: tpl.Template, Values: map[string]string{"Deployment": c.how, "AlarmEmail": c.email, "AlarmTopic": "topic"}}
			var got []string
			for _, id := range tpl.ofType("AWS::CloudWatch::Alarm") {
				holds, err := s.Condition(show(at(tpl.Resources[id], "Condition")))
				if err != nil {
					t.Fatal(err)
				}
				if !holds {
					continue
				}
				got = append(got, id)
				actions, err := s.Resolve(at(tpl.Resources[id], "Properties", "AlarmActions"))
				if err != nil || (fmt.Sprint(actions) == "[topic]") != c.actions {
					t.Errorf("%s tells %v, %v", id, actions, err)
				}
			}
			same(t, "the alarms", got, c.want)
		})
	}
}

func TestTheChoicesOfADeploymentAreCodeDeploys(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	known := []string{
		"AllAtOnce", "Canary10Percent5Minutes", "Canary10Percent10Minutes", "Canary10Percent15Minutes", "Canary10Percent30Minutes",
		"Linear10PercentEvery1Minute", "Linear10PercentEvery2Minutes", "Linear10PercentEvery3Minutes", "Linear10PercentEvery10Minutes",
	}
	choices := texts(at(tpl.Parameters["Deployment"], "AllowedValues"))
	same(t, "the choices", choices, known)
	for _, choice := range choices {
		if got, want := at(tpl.Mappings["Deployments"], choice, "Gradual"), choice != "AllAtOnce"; got != want {
			t.Errorf("%s is gradual: %v", choice, got)
		}
	}
}

// TestEachSettingIsANewVersion: an alias leads to a version, which keeps the
// environment that it was made with. SAM makes another when the template's text
// changes, CloudFormation when the version's description does; and Lambda makes
// none of a function that is what it was. So the description is what parameters
// decide in the environment, word for word.
func TestEachSettingIsANewVersion(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, f := range tpl.functions() {
		if f.Props["AutoPublishAliasAllProperties"] != true {
			t.Errorf("a change of %s in the template is no new version", f.ID)
		}
		want := []string{"!Ref Metrics"} // for the stack's name, which stays
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
		for _, without := range []string{"", "PublicUrl", "DomainName"} {
			if text, err := tpl.longest(without).Text(f.Props["VersionDescription"]); err != nil || len(text) > 256 {
				t.Errorf("a version of %s is described by up to %d characters, %v", f.ID, len(text), err)
			}
		}
	}
}

// parametersIn are those that a value depends on, itself or by a condition.
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

// longest is a stack whose parameters, but for one, are as long as they may be.
// It has no value for one that is not bounded.
func (d document) longest(without string) template.Stack {
	values := map[string]string{}
	for name, p := range d.Parameters {
		most, bounded := at(p, "MaxLength").(int)
		allowed := texts(at(p, "AllowedValues"))
		switch {
		case name == without:
			values[name] = ""
		case bounded:
			values[name] = strings.Repeat("x", most)
		case len(allowed) > 0:
			values[name] = slices.MaxFunc(allowed, func(a, b string) int { return len(a) - len(b) })
		case at(p, "MaxValue") != nil:
			values[name] = show(at(p, "MaxValue"))
		}
	}
	return template.Stack{Template: template.Template{Conditions: d.Conditions}, Values: values}
}

// TestNothingWaitsForItself: CloudFormation refuses a template with a circle. A
// gradual deployment makes long ways: the API waits for aliases, these for what
// deploys them, and that for its alarms.
func TestNothingWaitsForItself(t *testing.T) {
	t.Parallel()
	all := transformed(t, gradually)
	state := map[string]int{} // 1: on the way, 2: done
	var visit func(id string, way []string)
	visit = func(id string, way []string) {
		way = append(way, id)
		if state[id] == 1 {
			t.Errorf("a circle: %v", way)
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

// waitsFor are the resources that one speaks of.
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
