package cloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"ferry/infra/assembly"
	"ferry/infra/lambdahost"
	"ferry/infra/template"

	"ferry/shared/api"
)

// Stack is one that was deployed, behind an API on loopback.
type Stack struct {
	assembly.Description
	Outputs map[string]string
	IDs     map[string]string // the physical name of each resource, by the template's

	cloud      *Cloud
	parameters map[string]string
	front      *http.Server

	// Quiet, if there is one, returns when no event is under way that must not be
	// lost. Update calls it while no call reaches a function.
	Quiet func(context.Context) error

	// The emulator ends a process in the midst of a call if its program is
	// replaced, which Lambda does not: calls wait for that. So it does with
	// events, and a queue brings such a one again only minutes later.
	replacing sync.RWMutex
	api       http.Handler
}

// alias is what calls of a function go to, as the template says.
const alias = "live"

// Deploy makes a stack and waits until it is there.
func (c *Cloud) Deploy(ctx context.Context, name string, parameters map[string]string) (*Stack, error) {
	s := &Stack{cloud: c, Description: assembly.Description{Name: name, Endpoint: c.Address}, parameters: maps.Clone(parameters)}
	root, err := s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.replacing.RLock()
		defer s.replacing.RUnlock()
		s.api.ServeHTTP(w, r)
	}))
	if err != nil {
		return nil, err
	}
	s.Base = root + api.Prefix
	if s.parameters == nil {
		s.parameters = map[string]string{}
	}
	if _, given := parameters["PublicUrl"]; !given {
		s.parameters["PublicUrl"] = s.Base
	}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(err, s.front.Close())
	}
	if err := s.route(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stack) create(ctx context.Context) error {
	_, err := s.cloud.stacks.CreateStack(ctx, &cloudformation.CreateStackInput{
		StackName: &s.Name, TemplateURL: &s.cloud.url, Parameters: s.values(), Capabilities: []types.Capability{types.CapabilityCapabilityIam},
	})
	if err != nil {
		return fmt.Errorf("creating the stack %s: %w", s.Name, err)
	}
	return s.settle(ctx, types.StackStatusCreateComplete)
}

// Update deploys another version over the stack.
func (s *Stack) Update(ctx context.Context, c *Cloud) error {
	s.replacing.Lock()
	defer s.replacing.Unlock()
	if s.Quiet != nil {
		if err := s.Quiet(ctx); err != nil {
			return err
		}
	}
	_, err := c.stacks.UpdateStack(ctx, &cloudformation.UpdateStackInput{
		StackName: &s.Name, TemplateURL: &c.url, Parameters: s.values(), Capabilities: []types.Capability{types.CapabilityCapabilityIam},
	})
	if err != nil {
		return fmt.Errorf("updating the stack %s: %w", s.Name, err)
	}
	s.cloud = c
	if err := s.settle(ctx, types.StackStatusUpdateComplete); err != nil {
		return err
	}
	return s.route()
}

// Mix lets every other call of each of the API's functions go to the program
// that another version has of it, as a gradual deployment does, until the next
// Update.
func (s *Stack) Mix(ctx context.Context, c *Cloud) error {
	s.replacing.Lock()
	defer s.replacing.Unlock()
	return s.routeTo(func(f template.Function) (lambdahost.Invoker, error) {
		other, err := c.lambda.UpdateFunctionCode(ctx, &lambda.UpdateFunctionCodeInput{
			FunctionName: aws.String(s.IDs[f.ID]), S3Bucket: &c.artifacts, S3Key: &f.Name, Publish: true,
		})
		if err != nil {
			return nil, fmt.Errorf("giving %s another program: %w", f.Name, err)
		}
		return &alternating{now: s.function(f.ID), next: function{c.lambda, s.IDs[f.ID], aws.ToString(other.Version)}}, nil
	})
}

// alternating is a function of which there are two versions.
type alternating struct {
	mu        sync.Mutex
	now, next function
}

// Invoke implements lambdahost.Invoker.
func (a *alternating) Invoke(ctx context.Context, event []byte) (lambdahost.Result, error) {
	a.mu.Lock()
	f := a.now
	a.now, a.next = a.next, a.now
	a.mu.Unlock()
	return f.Invoke(ctx, event)
}

func (s *Stack) values() (all []types.Parameter) {
	for name, value := range s.parameters {
		all = append(all, types.Parameter{ParameterKey: aws.String(name), ParameterValue: aws.String(value)})
	}
	return all
}

// settle waits until nothing is changed any more, and reads what is there.
func (s *Stack) settle(ctx context.Context, want types.StackStatus) error {
	for {
		all, err := s.cloud.stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &s.Name})
		if err != nil {
			return fmt.Errorf("looking at the stack %s: %w", s.Name, err)
		}
		stack := all.Stacks[0]
		if stack.StackStatus == want {
			return s.read(ctx, stack)
		}
		if !strings.HasSuffix(string(stack.StackStatus), "IN_PROGRESS") {
			return fmt.Errorf("the stack %s became %s: %w", s.Name, stack.StackStatus, s.why(ctx))
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// why collects what failed.
func (s *Stack) why(ctx context.Context) error {
	events, err := s.cloud.stacks.DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: &s.Name})
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range events.StackEvents {
		if strings.HasSuffix(string(e.ResourceStatus), "FAILED") {
			errs = append(errs, fmt.Errorf("%s: %s", aws.ToString(e.LogicalResourceId), aws.ToString(e.ResourceStatusReason)))
		}
	}
	return errors.Join(errs...)
}

func (s *Stack) read(ctx context.Context, stack types.Stack) error {
	s.Outputs, s.IDs = map[string]string{}, map[string]string{}
	for _, o := range stack.Outputs {
		s.Outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	pages := cloudformation.NewListStackResourcesPaginator(s.cloud.stacks, &cloudformation.ListStackResourcesInput{StackName: &s.Name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("listing the resources of %s: %w", s.Name, err)
		}
		for _, r := range page.StackResourceSummaries {
			s.IDs[aws.ToString(r.LogicalResourceId)] = aws.ToString(r.PhysicalResourceId)
		}
	}
	s.Table, s.FilesBucket, s.BackupBucket = s.IDs["Table"], s.IDs["FilesBucket"], s.IDs["BackupBucket"]
	s.KeyParameter = s.Outputs["KeyParameterName"]
	return nil
}

// route makes the API, whose routes are those of the template.
func (s *Stack) route() error {
	return s.routeTo(func(f template.Function) (lambdahost.Invoker, error) { return s.function(f.ID), nil })
}

func (s *Stack) routeTo(invoker func(template.Function) (lambdahost.Invoker, error)) error {
	values := maps.Clone(s.IDs)
	maps.Copy(values, s.parameters)
	maps.Copy(values, map[string]string{
		"AWS::StackName": s.Name, "AWS::Region": s.cloud.Config.Region, "AWS::Partition": "aws", "AWS::AccountId": "000000000000", "AWS::URLSuffix": "amazonaws.com",
	})
	functions, err := template.Stack{Template: s.cloud.template, Values: values}.Functions()
	if err != nil {
		return err
	}
	var routes []lambdahost.Route
	for _, f := range functions {
		if len(f.Routes) == 0 {
			continue
		}
		to, err := invoker(f)
		if err != nil {
			return err
		}
		for _, r := range f.Routes {
			routes = append(routes, lambdahost.Route{Method: r.Method, Path: r.Path, Function: to})
		}
	}
	s.api = lambdahost.Gateway(routes)
	return nil
}

// function is one of the stack, by its name in the template.
func (s *Stack) function(id string) function {
	f := function{client: s.cloud.lambda, name: s.IDs[id]}
	if s.IDs[id+"Alias"+alias] != "" {
		f.version = alias
	}
	return f
}

// function is one at the emulator.
type function struct {
	client  *lambda.Client
	name    string
	version string // or an alias; the newest if empty
}

// Invoke implements lambdahost.Invoker.
func (f function) Invoke(ctx context.Context, event []byte) (r lambdahost.Result, err error) {
	if len(event) > lambdahost.MaxPayload {
		return r, lambdahost.ErrEventTooLarge
	}
	began := time.Now()
	in := &lambda.InvokeInput{FunctionName: &f.name, Payload: event}
	if f.version != "" {
		in.Qualifier = &f.version
	}
	out, err := f.client.Invoke(ctx, in)
	if err != nil {
		return r, fmt.Errorf("invoking %s: %w", f.name, err)
	}
	r = lambdahost.Result{Payload: out.Payload, Failed: aws.ToString(out.FunctionError), Took: time.Since(began)}
	if len(r.Payload) > lambdahost.MaxPayload {
		r.Failed = "Function.ResponseSizeTooLarge"
	}
	return r, nil
}

// Invoke calls a function, by its name in the template, with an event.
func (s *Stack) Invoke(ctx context.Context, id string, event []byte) (lambdahost.Result, error) {
	return s.function(id).Invoke(ctx, event)
}

func (s *Stack) serve(h http.Handler) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s.front = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go s.front.Serve(l) // until Close
	return "http://" + l.Addr().String(), nil
}

// Close ends the API and deletes the stack; its data stay, as the template says.
func (s *Stack) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := s.cloud.stacks.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &s.Name})
	return errors.Join(err, s.front.Close())
}
