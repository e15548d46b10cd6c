// Package cloud deploys the stack of template.yaml, with the real programs of
// its functions, to an emulator of AWS: its resources are made as AWS's own SAM
// translator writes them out, its stream, topics, queues and schedule call the
// functions by themselves, and each function may do what its role says, and no
// more.
//
// The emulator is ministack (https://github.com/ministackorg/ministack), which
// infra/awslocal installs. What it lacks stands before it here: it makes no
// routes of the API's OpenAPI text, knows only payload format 2.0 of an HTTP
// API, and sets no bound to the size of an event.
package cloud

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"

	"ferry/infra/template"
)

// The names by which infra/awslocal tells where the emulator is, and which
// Python has AWS's SAM translator.
const (
	AddressVariable = "FERRY_TEST_CLOUD"
	PythonVariable  = "FERRY_TEST_SAM"
)

// ErrNoEmulator is returned where the environment names no emulator.
var ErrNoEmulator = errors.New("there is no emulator of AWS: go run ./infra/awslocal -- COMMAND")

// Cloud is the emulator with one version of the template and of the programs of
// all functions. It is safe for concurrent use.
type Cloud struct {
	Address string // of each of its services
	Config  aws.Config

	template  template.Template
	artifacts string // the bucket that `sam deploy` would put the programs into
	url       string // of the transformed template, as CloudFormation gets it
	stacks    *cloudformation.Client
	lambda    *lambda.Client
}

// Open uploads the programs, one for each function, and transforms the template.
func Open(ctx context.Context, root, programs string) (*Cloud, error) {
	c := &Cloud{Address: os.Getenv(AddressVariable), artifacts: "ferry-artifacts-" + strings.ToLower(rand.Text())}
	if c.Address == "" {
		return nil, ErrNoEmulator
	}
	var err error
	if c.template, err = template.Read(filepath.Join(root, "template.yaml")); err != nil {
		return nil, err
	}
	c.Config, err = config.LoadDefaultConfig(ctx, config.WithBaseEndpoint(c.Address))
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	c.Config.ConfigSources = nil // which name other stand-ins for some services
	c.stacks, c.lambda = cloudformation.NewFromConfig(c.Config), lambda.NewFromConfig(c.Config)
	if err := c.upload(ctx, programs); err != nil {
		return nil, err
	}
	return c, c.transform(ctx, filepath.Join(root, "template.yaml"))
}

func (c *Cloud) buckets() *s3.Client {
	return s3.NewFromConfig(c.Config, func(o *s3.Options) { o.UsePathStyle = true })
}

func (c *Cloud) upload(ctx context.Context, programs string) error {
	all, err := os.ReadDir(programs)
	if err != nil {
		return fmt.Errorf("reading the programs: %w", err)
	}
	client := c.buckets()
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &c.artifacts}); err != nil {
		return fmt.Errorf("making the bucket of the programs: %w", err)
	}
	for _, entry := range all {
		text, err := packed(filepath.Join(programs, entry.Name()))
		if err != nil {
			return fmt.Errorf("packing %s: %w", entry.Name(), err)
		}
		if _, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: &c.artifacts, Key: aws.String(entry.Name()), Body: bytes.NewReader(text)}); err != nil {
			return fmt.Errorf("uploading %s: %w", entry.Name(), err)
		}
	}
	return nil
}

// packed is a program as Lambda wants it.
func packed(program string) ([]byte, error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Store}
	header.SetMode(0o755)
	w, err := z.CreateHeader(header)
	if err == nil {
		_, err = w.Write(text)
	}
	err = errors.Join(err, z.Close()) // which writes the end
	return out.Bytes(), err
}

// Verify lets the emulator's SES send from an address.
func (c *Cloud) Verify(ctx context.Context, address string) error {
	if _, err := sesv2.NewFromConfig(c.Config).CreateEmailIdentity(ctx, &sesv2.CreateEmailIdentityInput{EmailIdentity: &address}); err != nil {
		return fmt.Errorf("verifying %s: %w", address, err)
	}
	return nil
}

//go:embed transform.py
var transformer string

// transform runs AWS's SAM translator over the template, with the programs at
// their places, and puts the result beside them.
func (c *Cloud) transform(ctx context.Context, path string) error {
	t, err := template.Read(path) // one to change
	if err != nil {
		return err
	}
	for id, r := range t.Resources {
		r, _ := r.(template.Object)
		if properties, ok := r["Properties"].(template.Object); ok && r["Type"] == "AWS::Serverless::Function" {
			properties["CodeUri"] = "s3://" + c.artifacts + "/" + strings.ToLower(id)
		}
	}
	document := template.Object{"Transform": "AWS::Serverless-2016-10-31"}
	for name, section := range map[string]template.Object{
		"Parameters": t.Parameters, "Mappings": t.Mappings, "Conditions": t.Conditions, "Rules": t.Rules,
		"Globals": t.Globals, "Resources": t.Resources, "Outputs": t.Outputs,
	} {
		if section != nil {
			document[name] = section
		}
	}
	text, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("writing the template: %w", err)
	}
	var stderr strings.Builder
	p := exec.CommandContext(ctx, os.Getenv(PythonVariable), "-c", transformer)
	p.Env = append(os.Environ(), "AWS_DEFAULT_REGION="+c.Config.Region)
	p.Stdin, p.Stderr = bytes.NewReader(text), &stderr
	out, err := p.Output()
	if err != nil {
		return fmt.Errorf("transforming the template: %w: %s", err, stderr.String())
	}
	const key = "template.json"
	c.url = c.Address + "/" + c.artifacts + "/" + key
	if _, err := c.buckets().PutObject(ctx, &s3.PutObjectInput{Bucket: &c.artifacts, Key: aws.String(key), Body: bytes.NewReader(out)}); err != nil {
		return fmt.Errorf("uploading the template: %w", err)
	}
	return nil
}
