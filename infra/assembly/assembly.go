// Package assembly puts the functions of template.yaml together on this
// machine: their real programs, run as Lambda runs them, with the environment
// that the template gives them, behind an API that routes as the template says.
package assembly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"ferry/infra/lambdahost"
	"ferry/infra/template"
)

// Config says what is put together.
type Config struct {
	Root     string            // of the module
	Programs string            // folder with a program for each function: see Build
	Values   map[string]string // of the template's names: see template.Stack
	AWS      map[string]string // variables of the AWS SDK, such as AWS_ENDPOINT_URL_S3
	Log      io.Writer         // of the functions
}

// Assembly is the functions, of which each process starts with its first event.
type Assembly struct {
	Functions []template.Function
	Hosts     map[string]*lambdahost.Host // by the function's name
	aws       map[string]string
}

// Environment is what a function's process gets, but for what Lambda adds.
func (a *Assembly) Environment(name string) (map[string]string, error) {
	for _, f := range a.Functions {
		if f.Name == name {
			all := maps.Clone(a.aws)
			maps.Copy(all, f.Environment)
			return all, nil
		}
	}
	return nil, fmt.Errorf("the template has no function %s", name)
}

// Build builds all functions for this machine into a folder.
func Build(ctx context.Context, root, into string) error { return BuildOne(ctx, root, "...", into) }

// BuildOne builds one function.
func BuildOne(ctx context.Context, root, name, into string) error {
	c := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-o", into+string(filepath.Separator), "./functions/"+name)
	c.Dir = root
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building the functions: %w: %s", err, out)
	}
	return nil
}

// New reads the template and prepares a host for each function.
func New(c Config) (*Assembly, error) {
	t, err := template.Read(filepath.Join(c.Root, "template.yaml"))
	if err != nil {
		return nil, err
	}
	functions, err := template.Stack{Template: t, Values: c.Values}.Functions()
	if err != nil {
		return nil, err
	}
	a := &Assembly{Functions: functions, Hosts: map[string]*lambdahost.Host{}, aws: c.AWS}
	for _, f := range functions {
		environment, err := a.Environment(f.Name)
		if err != nil {
			return nil, err
		}
		a.Hosts[f.Name] = lambdahost.New(lambdahost.Function{
			Name: f.Name, Program: filepath.Join(c.Programs, f.Name), Environment: environment,
			Timeout: f.Timeout, Memory: f.Memory, Log: c.Log,
		})
	}
	return a, nil
}

// Handler is the API.
func (a *Assembly) Handler() http.Handler {
	var routes []lambdahost.Route
	for _, f := range a.Functions {
		for _, r := range f.Routes {
			routes = append(routes, lambdahost.Route{Method: r.Method, Path: r.Path, Function: a.Hosts[f.Name]})
		}
	}
	return lambdahost.Gateway(routes)
}

// Close ends all processes.
func (a *Assembly) Close() error {
	var errs []error
	for _, h := range a.Hosts {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}
