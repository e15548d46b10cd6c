package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/infra/assembly"
	"ferry/infra/lambdahost"
	"ferry/infra/template"
	"ferry/shared/boot/fixture"
)

type invokeCommand struct {
	Name  string `arg:"" help:"Function: a directory of functions/."`
	Event string `arg:"" optional:"" type:"existingfile" help:"File with the event (default events/NAME.json)."`
	Raw   bool   `help:"Print the function's answer as it is, not the response that the gateway makes of it."`
}

// Help is shown by ferry invoke --help.
func (invokeCommand) Help() string {
	return `Run it in the project's root. The function is built, started as Lambda starts it, with the environment that template.yaml gives it, and sent the event.
Next to stand-ins for AWS its data are new ones that events/ speak of, with topics, queues and a sender of mail, and the answer is held to the one that the event expects, if it says so:

    go run ./infra/awslocal -- bin/ferry invoke downloadlist
    go run ./infra/awslocal -- bin/ferry invoke feedback events/feedbacksms.json

With FERRY_TABLE, FERRY_FILES_BUCKET, FERRY_BACKUP_BUCKET, FERRY_KEY_PARAMETER and AWS credentials in the environment it works with the data of that stack, and does there what the event says.
What else the function takes from its environment, as template.yaml has it, such as FERRY_QUEUE, it takes from yours.`
}

func (c invokeCommand) Run(ctx context.Context, out console) error {
	event, err := c.read()
	if err != nil {
		return err
	}
	onStack := os.Getenv("FERRY_TABLE") != ""
	if !onStack && os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") == "" {
		return &coded{exitSettings, fmt.Errorf("there are neither stand-ins for AWS (go run ./infra/awslocal -- bin/ferry invoke %s) nor a stack's data (FERRY_TABLE ...): see ferry invoke --help", c.Name)}
	}
	programs, err := os.MkdirTemp("", "ferry-invoke-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(programs)
	fmt.Fprintf(out.Err, "building functions/%s ...\n", c.Name)
	if err := assembly.BuildOne(ctx, ".", c.Name, programs); err != nil {
		return err
	}
	if onStack {
		return c.onStack(ctx, programs, event, out)
	}
	return c.onStandIns(ctx, programs, event, out)
}

// read reads the event.
func (c invokeCommand) read() (fixture.Fixture, error) {
	if _, err := os.Stat(filepath.Join("functions", c.Name, "main.go")); err != nil {
		return fixture.Fixture{}, &coded{exitUsage, fmt.Errorf("there is no functions/%s here: run it in the project's root, with the name of a directory of functions/", c.Name)}
	}
	path := c.Event
	if path == "" {
		path = filepath.Join("events", c.Name+".json")
	}
	f, err := fixture.Read(c.Name, path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, &coded{exitNoFile, fmt.Errorf("there is no event %s", path)}
	}
	return f, err
}

// onStandIns invokes the function on new data in stand-ins for AWS.
func (c invokeCommand) onStandIns(ctx context.Context, programs string, f fixture.Fixture, out console) error {
	it, err := assembly.StartFixtures(ctx, assembly.LocalConfig{Root: ".", Programs: programs, Name: "invoke-" + strings.ToLower(rand.Text()), Log: out.Err}, f)
	if err != nil {
		return err
	}
	defer it.Close()
	host := it.Hosts[c.Name]
	if host == nil {
		return c.unknown()
	}
	payload, err := c.invoke(ctx, host, it.Event(), out)
	if err != nil {
		return err
	}
	answer := it.Answer(payload)
	if err := c.print(out.Out, answer); err != nil || f.Expect.Empty() {
		return err
	}
	if err := f.Expect.Check(answer); err != nil {
		return fmt.Errorf("the answer is not the one that the event expects: %w", err)
	}
	fmt.Fprintln(out.Err, "the answer is as the event expects")
	return nil
}

// onStack invokes the function on the data that the environment names.
func (c invokeCommand) onStack(ctx context.Context, programs string, f fixture.Fixture, out console) error {
	values := map[string]string{
		"AWS::StackName": strings.TrimSuffix(strings.TrimPrefix(os.Getenv("FERRY_KEY_PARAMETER"), "/"), "/link-key"),
		"AWS::Region":    os.Getenv("AWS_REGION"), "AWS::Partition": "aws", "AWS::AccountId": "", "AWS::URLSuffix": "amazonaws.com",
		"Table": os.Getenv("FERRY_TABLE"), "FilesBucket": os.Getenv("FERRY_FILES_BUCKET"), "BackupBucket": os.Getenv("FERRY_BACKUP_BUCKET"),
	}
	for _, name := range []string{"NoticesTopic", "EventsTopic", "MailQueue", "SmsQueue", "MailEvents"} {
		values[name] = "" // only a function that uses it needs it, and names its variable
	}
	it, err := assembly.New(assembly.Config{Root: ".", Programs: programs, Values: values, AWS: assembly.AWSVariables()})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(it.Functions, func(f template.Function) bool { return f.Name == c.Name })
	if i < 0 {
		return c.unknown()
	}
	environment, err := it.Environment(c.Name)
	if err != nil {
		return err
	}
	for name := range environment {
		if own, ok := os.LookupEnv(name); ok {
			environment[name] = own
		}
	}
	host := lambdahost.New(lambdahost.Function{
		Name: c.Name, Program: filepath.Join(programs, c.Name), Environment: environment,
		Timeout: it.Functions[i].Timeout, Memory: it.Functions[i].Memory, Log: out.Err,
	})
	defer host.Close()
	payload, err := c.invoke(ctx, host, f.Event, out)
	if err != nil {
		return err
	}
	return c.print(out.Out, payload)
}

func (c invokeCommand) unknown() error {
	return &coded{exitUsage, fmt.Errorf("template.yaml has no function %s", c.Name)}
}

// invoke sends the event, tells what that took, and returns the answer.
func (c invokeCommand) invoke(ctx context.Context, host *lambdahost.Host, event []byte, out console) ([]byte, error) {
	r, err := host.Invoke(ctx, event)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out.Err, "started in %s, answered in %s, %s, at most %s of memory\n", r.Init.Round(time.Millisecond), r.Took.Round(time.Millisecond), size(int64(len(r.Payload))), size(r.Peak))
	if r.Failed != "" {
		fmt.Fprintf(out.Out, "%s\n", r.Payload)
		return nil, fmt.Errorf("the function failed: %s", r.Failed)
	}
	return r.Payload, nil
}

func sortedHeader(all map[string][]string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(name, all[name]) {
				return
			}
		}
	}
}

// print shows a response as a person reads it.
func (c invokeCommand) print(out io.Writer, payload []byte) error {
	var r events.APIGatewayProxyResponse
	if err := json.Unmarshal(payload, &r); c.Raw || err != nil || r.StatusCode == 0 {
		_, err := fmt.Fprintf(out, "%s\n", payload)
		return err
	}
	fmt.Fprintf(out, "%d\n", r.StatusCode)
	for name, values := range sortedHeader(r.MultiValueHeaders) {
		fmt.Fprintf(out, "%s: %s\n", name, strings.Join(values, ", "))
	}
	body := []byte(r.Body)
	if r.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			return fmt.Errorf("the body is not base64: %w", err)
		}
	}
	_, err := fmt.Fprintf(out, "\n%s\n", strings.TrimRight(string(body), "\n"))
	return err
}
