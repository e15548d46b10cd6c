package stack

import (
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/local"
)

// others returns the functions that are not endpoints.
func others() []string { return []string{"email", "feedback", "linkkey", "relay", "sms", "sweep"} }

func names() []string {
	names := others()
	for _, e := range local.Endpoints() {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

// same reports what is in only one of two lists.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s: %s is missing", what, name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s: %s is unexpected", what, name)
		}
	}
}

func entries(t *testing.T, dir, suffix string) []string {
	t.Helper()
	found, err := os.ReadDir(filepath.Join(boottest.Root(t), dir))
	check(t, err)
	var names []string
	for _, e := range found {
		names = append(names, strings.TrimSuffix(e.Name(), suffix))
	}
	return names
}

func TestEachEndpointHasAFunctionAResourceAndAnEvent(t *testing.T) {
	t.Parallel()
	same(t, "functions/", entries(t, "functions", ""), names())
	// The status of text messages comes in another kind of event.
	same(t, "events/", entries(t, "events", ".json"), append(names(), "feedbacksms"))
	same(t, "the functions of template.yaml", slices.Sorted(maps.Keys(read(t).functions())), names())
	same(t, "the scenarios in scenarios_test.go", slices.Sorted(maps.Keys(scenarios())), names())
}

func TestTheTemplateHasTheRoutesOfTheEndpoints(t *testing.T) {
	t.Parallel()
	functions := read(t).functions()
	for _, e := range local.Endpoints() {
		var got []string
		for _, p := range functions[e.Name].events("HttpApi") {
			got = append(got, show(p["Method"])+" "+show(p["Path"]))
		}
		same(t, "the routes of "+e.Name, got, routes(e))
	}
	for _, name := range others() {
		if n := len(functions[name].events("HttpApi")); n > 0 {
			t.Errorf("%s has %d routes", name, n)
		}
	}
}

// TestRoutesWithoutALoginThatCostMuchHaveAThrottleOfTheirOwn compares names too: a stage
// with settings of a route that does not exist cannot be deployed.
func TestRoutesWithoutALoginThatCostMuchHaveAThrottleOfTheirOwn(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for _, e := range local.Endpoints() {
		for _, route := range routes(e) {
			switch name := strings.TrimPrefix(route, "POST /{page}"); {
			case e.Name == "openapi":
				want[route] = `{"ThrottlingBurstLimit":20,"ThrottlingRateLimit":2}`
			case name == "", slices.Contains([]string{
				"authlogin", "authfirst", "authforget", "authchange", "oauthtoken",
			}, e.Name):
				want[route] = `{"ThrottlingBurstLimit":100,"ThrottlingRateLimit":20}`
			}
		}
	}
	settings, _ := at(read(t).Resources["Api"], "Properties", "RouteSettings").(object)
	got := map[string]string{}
	for route, setting := range settings {
		got[route] = compact(setting)
	}
	if !maps.Equal(got, want) {
		t.Errorf("the throttles are %v, want %v", got, want)
	}
}

// routes returns an endpoint's routes. One without routes gets what matches no other.
func routes(e api.Endpoint) []string {
	if len(e.Routes) == 0 {
		return []string{"<nil> <nil>"}
	}
	var all []string
	for _, r := range e.Routes {
		all = append(all, r.Method+" "+e.Prefix+r.Path)
	}
	return all
}

func TestEachEventMatchesARouteOfItsFunction(t *testing.T) {
	t.Parallel()
	for _, e := range local.Endpoints() {
		var event struct {
			Version, Resource, Path, HTTPMethod string
			RequestContext                      struct{ DomainName, Stage, ResourcePath, HTTPMethod, Path string }
			MultiValueHeaders                   map[string][]string
		}
		boottest.Load(t, e.Name).Decode(t, &event)
		route := event.HTTPMethod + " " + event.Resource
		if event.Resource != "$default" && !slices.Contains(routes(e), route) ||
			(event.Resource == "$default") != (len(e.Routes) == 0) {
			t.Errorf("events/%s.json is for the route %s, not one of %v", e.Name, route, routes(e))
		}
		c := event.RequestContext
		if event.Version != "1.0" ||
			c.DomainName == "" ||
			c.Stage != "$default" ||
			c.ResourcePath != event.Resource ||
			c.Path != event.Path ||
			len(event.MultiValueHeaders) == 0 {
			t.Errorf("events/%s.json is incomplete: %+v", e.Name, event)
		}
	}
}

// main is the content of functions/NAME/main.go.
type main struct {
	text    string
	imports []string
	lines   int
}

func readMain(t *testing.T, name string) main {
	t.Helper()
	path := filepath.Join(boottest.Root(t), "functions", name, "main.go")
	text, err := os.ReadFile(path)
	check(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
	check(t, err)
	m := main{text: string(text), lines: strings.Count(string(text), "\n")}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		check(t, err)
		m.imports = append(m.imports, imported)
	}
	return m
}

// ports returns the ports that the function opens.
func (m main) ports() []string {
	var names []string
	for name, said := range map[string]string{
		"Table": "lambda.Table(dynamo.Open)", "Blobs": "lambda.Blobs(s3.Open)", "LinkKey": "lambda.LinkKey", "Versions": "lambda.KeyVersions",
		"Mover":  "lambda.Mover",
		"Topics": "Topics: sns.OpenTopics", "Queue": "Queue: sqs.Open", "Mail": "worker.Mail(ses.Open)", "SMS": "worker.SMS(sns.OpenText)",
	} {
		if strings.Contains(m.text, said) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// constructors returns the endpoints' constructors, as written in the list of
// endpoints, by the names of their functions.
func constructors(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(boottest.Root(t), "shared/boot/local/api.go"))
	check(t, err)
	calls := regexp.MustCompile(`(\w+\.\w+)\(\),`).FindAllStringSubmatch(string(text), -1)
	all := map[string]string{}
	for i, e := range local.Endpoints() {
		all[e.Name] = calls[i][1]
	}
	return all
}

func TestAMainOnlyNamesItsEndpointAndPorts(t *testing.T) {
	t.Parallel()
	constructors := constructors(t)
	for _, name := range names() {
		m := readMain(t, name)
		if m.lines > 15 {
			t.Errorf("functions/%s/main.go has %d lines", name, m.lines)
		}
		call, isEndpoint := constructors[name]
		if served := strings.Contains(m.text, "lambda.Run("+call+"()"); served != isEndpoint {
			t.Errorf("functions/%s/main.go runs %s(): %v", name, call, served)
		}
		if strings.Contains(m.text, "lambda.Format") != (name == "sweep") {
			t.Errorf("functions/%s/main.go checks the format of the data, which the sweep does for all", name)
		}
		if entries := entries(t, "functions/"+name, ""); !slices.Equal(entries, []string{"main.go"}) {
			t.Errorf("functions/%s holds %v", name, entries)
		}
	}
}
