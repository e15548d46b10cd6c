package stack

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ferry/shared/boot/boottest"
)

type object = map[string]any

// document is a template: one of the three that transform.py makes.
type document struct {
	Parameters, Mappings, Conditions, Rules, Globals, Resources, Outputs object
}

// read returns template.yaml with its loops expanded. Without SAM it takes the copy in
// testdata, which must belong to the same template.yaml.
func read(t testing.TB) document {
	t.Helper()
	text, err := run("--expand")
	if errors.Is(err, exec.ErrNotFound) {
		text, err = kept(t)
	}
	return parse(t, text, err)
}

// transformed returns what CloudFormation gets; parameters are NAME=VALUE.
func transformed(t testing.TB, parameters ...string) document {
	t.Helper()
	return withSAM(t, parameters...)
}

// made returns what CloudFormation makes of that: without parameters, conditions and
// what these leave out.
func made(t testing.TB, parameters ...string) document {
	t.Helper()
	return withSAM(t, append([]string{"--resolve"}, parameters...)...)
}

func withSAM(t testing.TB, options ...string) document {
	t.Helper()
	text, err := run(options...)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("SAM is not installed: pip install -r infra/ci/requirements.txt")
	}
	return parse(t, text, err)
}

// transformer is a running transform.py, with the Python of SAM. It ends with the tests.
type transformer struct {
	mu      sync.Mutex // held while it works
	command *exec.Cmd
	options *json.Encoder
	said    *bufio.Reader
	errors  strings.Builder   // complete once the command has ended
	outputs map[string][]byte // by the options
}

var startTransformer = sync.OnceValues(func() (*transformer, error) {
	sam, err := exec.LookPath("sam")
	if err != nil {
		return nil, err
	}
	it := &transformer{outputs: map[string][]byte{}}
	c := exec.Command(filepath.Join(filepath.Dir(sam), "python3"), "transform.py", "../../template.yaml", "--each")
	c.Stderr = &it.errors
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	it.command = c
	it.options = json.NewEncoder(in)
	it.said = bufio.NewReader(out)
	return it, c.Start()
})

// run returns what transform.py makes with these options.
func run(options ...string) ([]byte, error) {
	it, err := startTransformer()
	if err != nil {
		return nil, err
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	name := strings.Join(options, "\n")
	if made, ok := it.outputs[name]; ok {
		return made, nil
	}
	if err := it.options.Encode(append([]string{}, options...)); err != nil {
		return nil, fmt.Errorf("asking transform.py: %w", err)
	}
	text, err := it.said.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("transforming template.yaml: %w: %s", errors.Join(err, it.command.Wait()), &it.errors)
	}
	it.outputs[name] = text
	return text, nil
}

// keptFile is template.yaml with its loops expanded, for machines without SAM.
const keptFile = "expanded.json" // in testdata

// expansion is the content of keptFile.
type expansion struct {
	Of       string // the hash of template.yaml
	Expanded json.RawMessage
}

func kept(t testing.TB) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join("testdata", keptFile))
	if err != nil {
		return nil, err
	}
	var it expansion
	if err := json.Unmarshal(text, &it); err != nil {
		return nil, err
	}
	if it.Of != hash(t) {
		const update = "install SAM (infra/ci/requirements.txt) and run UPDATE_GOLDEN=1 go test ./infra/stack"
		return nil, fmt.Errorf("%s belongs to another template.yaml: %s", keptFile, update)
	}
	return it.Expanded, nil
}

func hash(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(boottest.Root(t), "template.yaml"))
	check(t, err)
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func parse(t testing.TB, text []byte, err error) (d document) {
	t.Helper()
	check(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	check(t, decoder.Decode(&d))
	for _, section := range []object{d.Parameters, d.Mappings, d.Conditions, d.Globals, d.Resources} {
		whole(section)
	}
	return d
}

// whole turns whole numbers into ints.
func whole(v any) any {
	switch v := v.(type) {
	case object:
		for key, e := range v {
			v[key] = whole(e)
		}
	case []any:
		for i, e := range v {
			v[i] = whole(e)
		}
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
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
		if parts := list(inner); k == "Fn::GetAtt" && len(parts) == 2 { // as in JSON
			inner = fmt.Sprintf("%v.%v", parts[0], parts[1])
		}
		if k == "Ref" || strings.HasPrefix(k, "Fn::") {
			return "!" + strings.TrimPrefix(k, "Fn::") + " " + show(inner)
		}
	}
	return fmt.Sprint(v)
}

// named returns the resource of an ARN.
func named(arn any) string {
	return strings.NewReplacer("!GetAtt ", "", "!Ref ", "", ".Arn", "", "Aliaslive", "").Replace(show(arn))
}

// list returns a list, also for a single value.
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

// statement is a statement of a policy.
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
	for _, id := range d.ofType("AWS::IAM::Policy") {
		props := at(d.Resources[id], "Properties")
		if at(d.Resources[id], "Condition") == nil && named(list(at(props, "Roles"))[0]) == f.ID+"Role" {
			all = append(all, statements(at(props, "PolicyDocument"))...)
		}
	}
	return all
}
