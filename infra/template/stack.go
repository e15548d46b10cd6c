package template

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Stack is a template with what CloudFormation would put in for its names.
type Stack struct {
	Template
	// Values are those of parameters, and what a resource's name (Ref) and
	// attributes (GetAtt, "Name.Attribute") become. A parameter without one
	// has its default.
	Values map[string]string
}

// NoValue is what AWS::NoValue becomes: the property is left out.
type NoValue struct{}

// Resolve returns a value of the template without intrinsic functions.
func (s Stack) Resolve(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		return s.list(v)
	case Object:
		for name, argument := range v {
			if len(v) == 1 && (name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::")) {
				return s.call(name, argument)
			}
		}
		return s.object(v)
	}
	return v, nil
}

// Text is Resolve for what becomes a string.
func (s Stack) Text(v any) (string, error) {
	r, err := s.Resolve(v)
	if err != nil {
		return "", err
	}
	switch r.(type) {
	case string, int, int64, bool, float64:
		return fmt.Sprint(r), nil
	}
	return "", fmt.Errorf("%v is no text", v)
}

func (s Stack) object(o Object) (any, error) {
	out := Object{}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		r, err := s.Resolve(o[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if r != (NoValue{}) {
			out[key] = r
		}
	}
	return out, nil
}

func (s Stack) list(all []any) (any, error) {
	out := []any{}
	for _, v := range all {
		r, err := s.Resolve(v)
		if err != nil {
			return nil, err
		}
		if r != (NoValue{}) {
			out = append(out, r)
		}
	}
	return out, nil
}

func (s Stack) call(name string, argument any) (any, error) {
	if name == "Fn::If" {
		return s.branch(argument)
	}
	if name == "Fn::Sub" {
		return s.sub(argument)
	}
	if name == "Fn::GetAtt" {
		return s.attribute(argument)
	}
	r, err := s.Resolve(argument)
	if err != nil {
		return nil, err
	}
	args, _ := r.([]any)
	switch {
	case name == "Ref":
		return s.named(fmt.Sprint(r))
	case name == "Condition":
		return s.Condition(fmt.Sprint(r))
	case name == "Fn::Not" && len(args) == 1:
		return args[0] != true, nil
	case name == "Fn::Equals" && len(args) == 2:
		return fmt.Sprint(args[0]) == fmt.Sprint(args[1]), nil
	case name == "Fn::And":
		return !slices.Contains(args, any(false)), nil
	case name == "Fn::Or":
		return slices.Contains(args, any(true)), nil
	case name == "Fn::Split" && len(args) == 2:
		parts := []any{}
		for _, p := range strings.Split(fmt.Sprint(args[1]), fmt.Sprint(args[0])) {
			parts = append(parts, p)
		}
		return parts, nil
	case name == "Fn::Join" && len(args) == 2:
		return join(args)
	case name == "Fn::Select" && len(args) == 2:
		return choose(args)
	case name == "Fn::FindInMap" && len(args) == 3:
		return s.find(args)
	}
	return nil, fmt.Errorf("%s of %v is not known here", name, argument)
}

func join(args []any) (any, error) {
	list, ok := args[1].([]any)
	if !ok {
		return nil, fmt.Errorf("Fn::Join of %v, which is no list", args[1])
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, fmt.Sprint(args[0])), nil
}

func choose(args []any) (any, error) {
	list, ok := args[1].([]any)
	i := 0
	if _, err := fmt.Sscan(fmt.Sprint(args[0]), &i); err != nil || !ok || i < 0 || i >= len(list) {
		return nil, fmt.Errorf("Fn::Select of %v", args)
	}
	return list[i], nil
}

func (s Stack) branch(argument any) (any, error) {
	args, ok := argument.([]any)
	if !ok || len(args) != 3 {
		return nil, fmt.Errorf("Fn::If of %v", argument)
	}
	holds, err := s.Condition(fmt.Sprint(args[0]))
	if err != nil {
		return nil, err
	}
	if holds {
		return s.Resolve(args[1])
	}
	return s.Resolve(args[2])
}

func (s Stack) find(args []any) (any, error) {
	var v any = s.Mappings
	for _, key := range args {
		o, _ := v.(Object)
		v = o[fmt.Sprint(key)]
	}
	if v == nil {
		return nil, fmt.Errorf("Fn::FindInMap of %v finds nothing", args)
	}
	return v, nil
}

// Condition tells whether a condition of the template holds.
func (s Stack) Condition(name string) (bool, error) {
	c, ok := s.Conditions[name]
	if !ok {
		return false, fmt.Errorf("there is no condition %s", name)
	}
	r, err := s.Resolve(c)
	return r == true, err
}

// named is what a parameter, a resource or a pseudo parameter becomes.
func (s Stack) named(name string) (any, error) {
	if name == "AWS::NoValue" {
		return NoValue{}, nil
	}
	if v, ok := s.Values[name]; ok {
		return v, nil
	}
	if p, ok := s.Parameters[name].(Object); ok {
		if d, ok := p["Default"]; ok {
			return fmt.Sprint(d), nil
		}
	}
	return nil, fmt.Errorf("what %s becomes is not known", name)
}

func (s Stack) attribute(argument any) (any, error) {
	if list, ok := argument.([]any); ok && len(list) == 2 {
		argument = fmt.Sprintf("%v.%v", list[0], list[1])
	}
	return s.named(fmt.Sprint(argument))
}

var placeholder = regexp.MustCompile(`\$\{(!?)([^}]*)\}`)

func (s Stack) sub(argument any) (any, error) {
	own := Object{}
	if list, ok := argument.([]any); ok && len(list) == 2 {
		argument = list[0]
		own, _ = list[1].(Object)
	}
	var failed error
	text := placeholder.ReplaceAllStringFunc(fmt.Sprint(argument), func(m string) string {
		parts := placeholder.FindStringSubmatch(m)
		if parts[1] == "!" {
			return "${" + parts[2] + "}"
		}
		var v any
		var err error
		if o, ok := own[parts[2]]; ok {
			v, err = s.Resolve(o)
		} else {
			v, err = s.named(parts[2])
		}
		if err != nil {
			failed = err
		}
		return fmt.Sprint(v)
	})
	return text, failed
}
