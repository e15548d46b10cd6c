package emulated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/wire"
)

// alias is the alias that the template gives each function. Calls go to it.
const alias = "live"

// maxPayload is the limit in bytes of an event and of an answer
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const maxPayload = 6 << 20

// errEventTooLarge is returned for an event that Lambda refuses.
var errEventTooLarge = errors.New("the event has more than 6 MB")

// Stack is a deployed stack, behind an API on loopback.
type Stack struct {
	boottest.Deployed
	Outputs map[string]string
	IDs     map[string]string // the physical name of each resource, by its name in the template

	name       string
	cloud      *Cloud
	parameters []types.Parameter
	front      *http.Server

	requests sync.RWMutex // write-locked while no request may be in progress
	api      http.Handler
}

// Result is the outcome of an event.
type Result struct {
	Payload []byte // the answer, or the description of the error
	Failed  string // the kind of the function's error, or empty
	Log     string // the end of the function's log, in base64
}

// Deploy creates a stack and waits until it is complete.
func (c *Cloud) Deploy(
	ctx context.Context,
	name string,
	parameters map[string]string,
) (*Stack, error) {
	s := &Stack{cloud: c, name: name}
	root, front, err := Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.RLock()
		defer s.requests.RUnlock()
		s.api.ServeHTTP(w, r)
	}))
	if err != nil {
		return nil, err
	}
	s.Base, s.front = root+wire.Prefix, front
	all := map[string]string{"PublicUrl": s.Base}
	maps.Copy(all, parameters)
	for name, value := range all {
		s.parameters = append(s.parameters, types.Parameter{
			ParameterKey:   &name,
			ParameterValue: &value,
		})
	}
	_, err = c.stacks.CreateStack(ctx, &cloudformation.CreateStackInput{
		StackName:    &s.name,
		TemplateURL:  &c.template,
		Parameters:   s.parameters,
		Capabilities: []types.Capability{types.CapabilityCapabilityIam},
	})
	if err == nil {
		err = s.waitFor(ctx, types.StackStatusCreateComplete)
	}
	if err != nil {
		return nil, errors.Join(
			fmt.Errorf("creating the stack %s: %w", s.name, err),
			s.front.Close(),
		)
	}
	return s, nil
}

// Serve starts an HTTP server on loopback, which runs until it is closed.
func Serve(h http.Handler) (address string, server *http.Server, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listening on loopback: %w", err)
	}
	server = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
	return "http://" + l.Addr().String(), server, nil
}

// waitFor waits until the stack has a status, and then reads the stack.
func (s *Stack) waitFor(ctx context.Context, want types.StackStatus) error {
	for {
		all, err := s.cloud.stacks.DescribeStacks(
			ctx,
			&cloudformation.DescribeStacksInput{StackName: &s.name},
		)
		if err != nil {
			return fmt.Errorf("looking at the stack %s: %w", s.name, err)
		}
		switch stack := all.Stacks[0]; {
		case stack.StackStatus == want:
			return s.read(ctx, stack)
		case !strings.HasSuffix(string(stack.StackStatus), "IN_PROGRESS"):
			return fmt.Errorf("the stack %s became %s: %w",
				s.name, stack.StackStatus, s.why(ctx))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// why collects the reasons of a failure.
func (s *Stack) why(ctx context.Context) error {
	events, err := s.cloud.stacks.DescribeStackEvents(
		ctx,
		&cloudformation.DescribeStackEventsInput{StackName: &s.name},
	)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range events.StackEvents {
		if strings.HasSuffix(string(e.ResourceStatus), "FAILED") {
			errs = append(
				errs,
				fmt.Errorf("%s: %s",
					aws.ToString(e.LogicalResourceId), aws.ToString(e.ResourceStatusReason)),
			)
		}
	}
	return errors.Join(errs...)
}

// read reads the stack's outputs and resources, and makes its API.
func (s *Stack) read(ctx context.Context, stack types.Stack) error {
	s.Outputs, s.IDs = map[string]string{}, map[string]string{}
	for _, o := range stack.Outputs {
		s.Outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	in := &cloudformation.ListStackResourcesInput{StackName: &s.name}
	for pages := cloudformation.NewListStackResourcesPaginator(s.cloud.stacks, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("listing the resources of %s: %w", s.name, err)
		}
		for _, r := range page.StackResourceSummaries {
			s.IDs[aws.ToString(r.LogicalResourceId)] = aws.ToString(r.PhysicalResourceId)
		}
	}
	s.Environment = map[string]string{
		"FERRY_TABLE":         s.IDs["Table"],
		"FERRY_FILES_BUCKET":  s.IDs["FilesBucket"],
		"FERRY_BACKUP_BUCKET": s.IDs["BackupBucket"],
		"FERRY_KEY_PARAMETER": s.Outputs["KeyParameterName"],
	}
	for _, service := range []string{"DYNAMODB", "S3", "SSM"} {
		s.Environment["AWS_ENDPOINT_URL_"+service] = s.cloud.Address
	}
	functions := map[string]invoker{}
	for _, r := range s.cloud.routes {
		functions[r.function] = s.function(r.function, alias)
	}
	s.api = gateway(s.cloud.routes, functions, s.cloud.turns)
	return nil
}

// function returns an invoker of a version of a function, by its name in the template.
func (s *Stack) function(id, version string) invoker {
	client, name := s.cloud.lambda, s.IDs[id]
	return func(ctx context.Context, event []byte) (r Result, err error) {
		if len(event) > maxPayload {
			return r, errEventTooLarge
		}
		in := &lambda.InvokeInput{
			FunctionName: &name,
			Qualifier:    &version,
			Payload:      event,
			LogType:      "Tail",
		}
		out, err := client.Invoke(ctx, in)
		if err != nil {
			return r, fmt.Errorf("invoking %s: %w", name, err)
		}
		r = Result{out.Payload, aws.ToString(out.FunctionError), aws.ToString(out.LogResult)}
		if len(r.Payload) > maxPayload {
			r.Failed = "Function.ResponseSizeTooLarge"
		}
		return r, nil
	}
}

// Fill stores the data that events/ refer to, with the link key that they use.
func Fill(
	ctx context.Context,
	c aws.Config,
	d boottest.Deployed,
	log *slog.Logger,
) (*service.Service, error) {
	_, err := ssm.NewFromConfig(c).PutParameter(ctx, &ssm.PutParameterInput{
		Name:      new(d.Environment["FERRY_KEY_PARAMETER"]),
		Value:     new(boottest.Key),
		Type:      "SecureString",
		Overwrite: new(true),
	})
	if err != nil {
		return nil, fmt.Errorf("storing the link key: %w", err)
	}
	s, err := d.Service(ctx, log)
	if err != nil {
		return nil, err
	}
	return boottest.Fill(ctx, s)
}

// Empty removes all data once the requests in progress are answered.
func (s *Stack) Empty(ctx context.Context) error {
	s.requests.Lock()
	defer s.requests.Unlock()
	p, err := s.Service(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	var ops []table.Op
	err = p.Table.Scan(ctx, func(i table.Item) error {
		ops = append(ops, table.Delete(i.Key))
		return nil
	})
	for some := range slices.Chunk(ops, table.MaxOps) {
		err = errors.Join(err, p.Table.Write(ctx, some...))
	}
	for _, area := range blob.Areas() {
		objects, unlisted := p.Blobs.List(ctx, area, "", blob.MaxList) // no test stores more
		err = errors.Join(err, unlisted)
		for _, o := range objects {
			err = errors.Join(err, p.Blobs.Delete(ctx, area, o.Key))
		}
	}
	_, unswept := p.Blobs.Sweep(ctx, time.Now().Add(time.Hour), nil) // unfinished uploads in parts
	if err := errors.Join(err, unswept); err != nil {
		return fmt.Errorf("emptying the stack %s: %w", s.name, err)
	}
	return nil
}

// Close ends the API and deletes the stack; its data stays, as the template says.
func (s *Stack) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	_, err := s.cloud.stacks.DeleteStack(
		ctx,
		&cloudformation.DeleteStackInput{StackName: &s.name},
	)
	return errors.Join(err, s.front.Close())
}

// Pause stops the events of a function, which the template calls id, or resumes them.
func (s *Stack) Pause(ctx context.Context, id string, paused bool) error {
	all, err := s.cloud.lambda.ListEventSourceMappings(
		ctx,
		&lambda.ListEventSourceMappingsInput{},
	)
	if err != nil {
		return fmt.Errorf("listing what brings events: %w", err)
	}
	err = fmt.Errorf("nothing brings events to %s", id)
	for _, m := range all.EventSourceMappings {
		if strings.Contains(aws.ToString(m.FunctionArn), ":"+s.IDs[id]) {
			_, err = s.cloud.lambda.UpdateEventSourceMapping(
				ctx,
				&lambda.UpdateEventSourceMappingInput{
					UUID:    m.UUID,
					Enabled: new(!paused),
				},
			)
		}
	}
	return err
}
