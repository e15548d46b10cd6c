package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Function is a Lambda function of the template.
type Function struct {
	ID          string // in the template
	Name        string // its directory in functions/
	Environment map[string]string
	Timeout     time.Duration
	Memory      int // MB
	Routes      []Route
}

// Route is one of the API's. Path is as the template has it, with {name} for
// what varies. The one that takes what no other does is "$default".
type Route struct{ Method, Path string }

// Functions returns all functions, in the order of their names, as they are
// with the stack's values.
func (s Stack) Functions() ([]Function, error) {
	var all []Function
	for _, id := range slices.Sorted(maps.Keys(s.Resources)) {
		r, _ := s.Resources[id].(Object)
		if r["Type"] != "AWS::Serverless::Function" {
			continue
		}
		f, err := s.function(id, r)
		if err != nil {
			return nil, fmt.Errorf("function %s: %w", id, err)
		}
		all = append(all, f)
	}
	return all, nil
}

func (s Stack) function(id string, r Object) (Function, error) {
	properties, _ := r["Properties"].(Object)
	globals, _ := s.Globals["Function"].(Object)
	f := Function{ID: id, Name: strings.ToLower(id), Environment: map[string]string{}}
	var err error
	if f.Memory, err = s.number(properties, globals, "MemorySize"); err != nil {
		return f, err
	}
	seconds, err := s.number(properties, globals, "Timeout")
	if err != nil {
		return f, err
	}
	f.Timeout = time.Duration(seconds) * time.Second
	for _, from := range []Object{globals, properties} {
		environment, _ := from["Environment"].(Object)
		variables, _ := environment["Variables"].(Object)
		for name, v := range variables {
			if f.Environment[name], err = s.Text(v); err != nil {
				return f, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	f.Routes, err = s.routes(properties)
	return f, err
}

func (s Stack) number(own, globals Object, name string) (n int, err error) {
	v, ok := own[name]
	if !ok {
		v = globals[name]
	}
	text, err := s.Text(v)
	if err == nil {
		_, err = fmt.Sscan(text, &n)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

func (s Stack) routes(properties Object) (all []Route, err error) {
	events, _ := properties["Events"].(Object)
	for _, name := range slices.Sorted(maps.Keys(events)) {
		event, _ := events[name].(Object)
		if event["Type"] != "HttpApi" {
			continue
		}
		p, _ := event["Properties"].(Object)
		if p["Path"] == nil {
			all = append(all, Route{Path: "$default"})
			continue
		}
		route := Route{}
		if route.Method, err = s.Text(p["Method"]); err != nil {
			return nil, err
		}
		if route.Path, err = s.Text(p["Path"]); err != nil {
			return nil, err
		}
		route.Method = strings.ToUpper(route.Method)
		all = append(all, route)
	}
	return all, nil
}
