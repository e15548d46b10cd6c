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
)

type invokeCommand struct {
	Name  string `arg:"" help:"Function: a directory of functions/."`
	Event string `arg:"" optional:"" type:"existingfile" help:"File with the event (default events/NAME.json)."`
	Raw   bool   `help:"Print the function's answer as it is, not the response that the gateway makes of it."`
}

// Help is shown by ferry invoke --help.
func (invokeCommand) Help() string {
	return `Run it in the project's root. The function is built, started as Lambda starts it, with the environment that template.yaml gives it, and sent the event.
Its data are new ones in stand-ins for AWS, which the environment must name:

    go run ./infra/awslocal -- bin/ferry invoke health

or those of a stack, with FERRY_TABLE, FERRY_FILES_BUCKET, FERRY_BACKUP_BUCKET, FERRY_KEY_PARAMETER and AWS credentials in the environment.`
}

func (c invokeCommand) Run(ctx context.Context, out console) error {
	if _, err := os.Stat(filepath.Join("functions", c.Name, "main.go")); err != nil {
		return &coded{exitUsage, fmt.Errorf("there is no functions/%s here: run it in the project's root, with the name of a directory of functions/", c.Name)}
	}
	if c.Event == "" {
		c.Event = filepath.Join("events", c.Name+".json")
	}
	event, err := os.ReadFile(c.Event)
	if errors.Is(err, fs.ErrNotExist) {
		return &coded{exitNoFile, fmt.Errorf("there is no event %s", c.Event)}
	}
	if err != nil {
		return fmt.Errorf("reading the event: %w", err)
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
	it, done, err := c.stack(ctx, programs, out.Err)
	if err != nil {
		return err
	}
	defer done()
	host := it.Hosts[c.Name]
	if host == nil {
		return &coded{exitUsage, fmt.Errorf("template.yaml has no function %s", c.Name)}
	}
	r, err := host.Invoke(ctx, event)
	if err != nil {
		return err
	}
	fmt.Fprintf(out.Err, "started in %s, answered in %s, %s, at most %s of memory\n", r.Init.Round(time.Millisecond), r.Took.Round(time.Millisecond), size(int64(len(r.Payload))), size(r.Peak))
	if r.Failed != "" {
		fmt.Fprintf(out.Out, "%s\n", r.Payload)
		return fmt.Errorf("the function failed: %s", r.Failed)
	}
	return c.print(out.Out, r.Payload)
}

// stack is a new one in stand-ins for AWS, or the one that the environment names.
func (c invokeCommand) stack(ctx context.Context, programs string, log io.Writer) (it *assembly.Assembly, done func() error, err error) {
	if os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != "" && os.Getenv("FERRY_TABLE") == "" {
		local, err := assembly.Start(ctx, assembly.LocalConfig{Root: ".", Programs: programs, Name: "invoke-" + strings.ToLower(rand.Text()), Log: log})
		if err != nil {
			return nil, nil, err
		}
		return local.Assembly, local.Close, nil
	}
	values := map[string]string{
		"AWS::StackName": strings.TrimSuffix(strings.TrimPrefix(os.Getenv("FERRY_KEY_PARAMETER"), "/"), "/link-key"),
		"AWS::Region":    os.Getenv("AWS_REGION"), "AWS::Partition": "aws", "AWS::AccountId": "", "AWS::URLSuffix": "amazonaws.com",
		"Table": os.Getenv("FERRY_TABLE"), "FilesBucket": os.Getenv("FERRY_FILES_BUCKET"), "BackupBucket": os.Getenv("FERRY_BACKUP_BUCKET"),
	}
	if values["Table"] == "" {
		return nil, nil, &coded{exitSettings, errors.New("there are no data to work with: see ferry invoke --help")}
	}
	it, err = assembly.New(assembly.Config{Root: ".", Programs: programs, Values: values, AWS: assembly.AWSVariables(), Log: log})
	if err != nil {
		return nil, nil, err
	}
	return it, it.Close, nil
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
