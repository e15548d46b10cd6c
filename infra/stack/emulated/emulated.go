// Package emulated deploys the stack of template.yaml, with the real programs of
// its functions, to an emulator of AWS: the stream, topics, queues and schedule
// call the functions by themselves, and each function can do only what its role
// allows. Only tests and test tools import it. Start reading with Open and Deploy.
//
// The emulator is ministack (https://github.com/ministackorg/ministack), which infra/awslocal
// installs and starts. It has no HTTP API with payload format 1.0 and does not limit the size of an
// event: gateway.go provides both. adapt removes from the template whatever else it does not support.
package emulated

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
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
)

// The variables in which infra/awslocal says where the emulator is, and which
// Python has AWS's SAM translator.
const (
	AddressVariable = "FERRY_TEST_CLOUD"
	PythonVariable  = "FERRY_TEST_SAM"
)

// builtVariable, if set, says that `make build` has built this checkout's functions for this
// machine. CI sets it.
const builtVariable = "FERRY_TEST_BUILT"

type object = map[string]any

// Cloud is the emulator with one version of the template and of all functions.
// It is safe for concurrent use.
type Cloud struct {
	Address string // of each of its services
	Config  aws.Config

	artifacts string // the bucket of the programs, which `sam deploy` would make
	template  string // the address of the transformed template, for CloudFormation
	routes    []route
	turns     chan struct{} // taken by the requests that run a function
	stacks    *cloudformation.Client
	lambda    *lambda.Client
	buckets   *s3.Client
}

// Open builds and uploads the functions of a checkout, and transforms its template
// with the script that is in the module.
func Open(ctx context.Context, module, checkout string) (*Cloud, error) {
	c := &Cloud{
		Address:   os.Getenv(AddressVariable),
		artifacts: "ferry-artifacts-" + strings.ToLower(rand.Text()),
		turns:     make(chan struct{}, atOnce),
	}
	if c.Address == "" {
		return nil, errors.New("there is no emulator of AWS: go run ./infra/awslocal -- COMMAND")
	}
	var err error
	if c.Config, err = config.LoadDefaultConfig(ctx, config.WithBaseEndpoint(c.Address)); err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	c.Config.ConfigSources = nil // they name other servers for some services
	c.stacks, c.lambda = cloudformation.NewFromConfig(c.Config), lambda.NewFromConfig(c.Config)
	c.buckets = s3.NewFromConfig(c.Config, func(o *s3.Options) { o.UsePathStyle = true })
	programs, err := os.MkdirTemp("", "ferry-programs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(programs)
	if err := functions(ctx, checkout, programs); err != nil {
		return nil, err
	}
	if err := c.upload(ctx, programs); err != nil {
		return nil, err
	}
	script := filepath.Join(module, "infra", "stack", "transform.py")
	return c, c.transform(ctx, script, filepath.Join(checkout, "template.yaml"))
}

// functions puts the functions of a checkout into a folder, under their names.
func functions(ctx context.Context, checkout, into string) error {
	built, err := filepath.Glob(filepath.Join(checkout, "bin", "functions", "*", "bootstrap"))
	if err != nil || len(built) == 0 || os.Getenv(builtVariable) == "" {
		return Build(ctx, checkout, into+string(filepath.Separator), "./functions/...")
	}
	for _, program := range built {
		name := filepath.Base(filepath.Dir(program))
		text, err := os.ReadFile(program)
		if err == nil {
			err = os.WriteFile(filepath.Join(into, name), text, 0o755)
		}
		if err != nil {
			return fmt.Errorf("copying %s: %w", name, err)
		}
	}
	return nil
}

// Build builds packages of a checkout with the flags of `make build`, so that another
// checkout of the same code is built from the cache.
func Build(ctx context.Context, checkout, into string, packages ...string) error {
	args := []string{
		"build", "-tags", "lambda.norpc", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w",
		"-o", into,
	}
	c := exec.CommandContext(ctx, "go", append(args, packages...)...)
	c.Dir = checkout
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building %v: %w: %s", packages, err, out)
	}
	return nil
}

func (c *Cloud) upload(ctx context.Context, programs string) error {
	all, err := os.ReadDir(programs)
	if err != nil {
		return fmt.Errorf("reading the programs: %w", err)
	}
	if _, err := c.buckets.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &c.artifacts}); err != nil {
		return fmt.Errorf("making the bucket of the programs: %w", err)
	}
	for _, entry := range all {
		text, err := packed(filepath.Join(programs, entry.Name()))
		if err == nil {
			err = c.put(ctx, entry.Name(), text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Cloud) put(ctx context.Context, name string, content []byte) error {
	in := &s3.PutObjectInput{Bucket: &c.artifacts, Key: &name, Body: bytes.NewReader(content)}
	if _, err := c.buckets.PutObject(ctx, in); err != nil {
		return fmt.Errorf("uploading %s: %w", name, err)
	}
	return nil
}

// packed returns a program in the form that Lambda wants.
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
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

// Verify lets the emulator's SES send from an address.
func (c *Cloud) Verify(ctx context.Context, address string) error {
	in := &sesv2.CreateEmailIdentityInput{EmailIdentity: &address}
	if _, err := sesv2.NewFromConfig(c.Config).CreateEmailIdentity(ctx, in); err != nil {
		return fmt.Errorf("verifying %s: %w", address, err)
	}
	return nil
}

// transform runs AWS's SAM translator over the template and uploads the result
// beside the programs.
func (c *Cloud) transform(ctx context.Context, script, path string) error {
	var stderr strings.Builder
	p := exec.CommandContext(ctx, os.Getenv(PythonVariable), script, path)
	p.Env = append(
		os.Environ(),
		"AWS_DEFAULT_REGION="+c.Config.Region,
		"FERRY_CODE=s3://"+c.artifacts,
	)
	p.Stderr = &stderr
	text, err := p.Output()
	if err != nil {
		return fmt.Errorf("transforming the template: %w: %s", err, stderr.String())
	}
	var template object
	if err := json.Unmarshal(text, &template); err != nil {
		return fmt.Errorf("reading the transformed template: %w", err)
	}
	adapt(template)
	c.routes = routes(template)
	if text, err = json.Marshal(template); err != nil {
		return fmt.Errorf("writing the transformed template: %w", err)
	}
	const name = "template.json"
	c.template = c.Address + "/" + c.artifacts + "/" + name
	return c.put(ctx, name, text)
}
