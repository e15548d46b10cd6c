package assembly

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"ferry/shared/boot"
	"ferry/shared/table/dynamo"

	"ferry/shared/auth"

	"ferry/shared/api"
)

// LocalConfig says how a stack is made on stand-ins for AWS, which the
// environment names by the variables of the AWS SDK.
type LocalConfig struct {
	Root, Programs string            // as in Config
	Name           string            // of the stack: small letters, digits and hyphens
	Key            string            // of the links; a fresh one if empty
	Values         map[string]string // parameters, and names beyond those that are made here
	Log            io.Writer
}

// Description is what another process needs to use a stack.
type Description struct {
	Name         string `json:"name"`
	Base         string `json:"base"` // the API's address, with /v1
	Table        string `json:"table"`
	FilesBucket  string `json:"filesBucket"`
	BackupBucket string `json:"backupBucket"`
	KeyParameter string `json:"keyParameter"`
	Endpoint     string `json:"endpoint"`   // the address of AWS's services, if it is not that of the environment
	Parameters   string `json:"parameters"` // the address of what stands for the Parameter Store
}

// Local is a stack with a table and buckets of its own. Those stay after Close.
type Local struct {
	Description
	*Assembly
	servers []*http.Server
}

// Start makes the table and the buckets, and serves the API on loopback.
func Start(ctx context.Context, c LocalConfig) (*Local, error) {
	it := &Local{Description: Description{
		Name: c.Name, Table: c.Name, FilesBucket: c.Name + "-files", BackupBucket: c.Name + "-backup", KeyParameter: "/" + c.Name + "/link-key",
	}}
	if err := it.make(ctx); err != nil {
		return nil, err
	}
	err := it.start(c)
	if err != nil {
		return nil, errors.Join(err, it.Close())
	}
	return it, nil
}

func (it *Local) make(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if err := dynamo.CreateTable(ctx, dynamodb.NewFromConfig(cfg), it.Table); err != nil {
		return fmt.Errorf("making the table: %w", err)
	}
	buckets := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	for _, name := range []string{it.FilesBucket, it.BackupBucket} {
		if _, err := buckets.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name}); err != nil {
			return fmt.Errorf("making a bucket: %w", err)
		}
	}
	return nil
}

func (it *Local) start(c LocalConfig) (err error) {
	if c.Key == "" {
		if c.Key, err = auth.NewLinkKey(rand.Reader); err != nil {
			return err
		}
	}
	if it.Parameters, err = it.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"Parameter":{"Value":%q}}`, c.Key)
	})); err != nil {
		return err
	}
	var gateway http.Handler
	root, err := it.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { gateway.ServeHTTP(w, r) }))
	if err != nil {
		return err
	}
	it.Base = root + api.Prefix
	values := map[string]string{
		"AWS::StackName": c.Name, "AWS::Region": os.Getenv("AWS_REGION"), "AWS::Partition": "aws", "AWS::AccountId": "123456789012", "AWS::URLSuffix": "amazonaws.com",
		"Table": it.Table, "FilesBucket": it.FilesBucket, "BackupBucket": it.BackupBucket, "PublicUrl": it.Base,
	}
	// There are no topics and queues: what would go to them stays in the table.
	for _, name := range []string{"NoticesTopic", "EventsTopic", "MailQueue", "SmsQueue", "MailEvents"} {
		values[name] = c.Name + "-" + strings.ToLower(name)
	}
	maps.Copy(values, c.Values)
	aws := AWSVariables()
	aws["AWS_ENDPOINT_URL_SSM"] = it.Parameters
	it.Assembly, err = New(Config{Root: c.Root, Programs: c.Programs, Values: values, AWS: aws, Log: c.Log})
	if err != nil {
		return err
	}
	gateway = it.Handler()
	return nil
}

// AWSVariables are those of the AWS SDK in this process's environment that a
// function needs in place of what Lambda gives it.
func AWSVariables() map[string]string {
	all := map[string]string{}
	for _, e := range os.Environ() {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case strings.HasPrefix(name, "AWS_ENDPOINT_URL"), name == "AWS_REGION", name == "AWS_ACCESS_KEY_ID", name == "AWS_SECRET_ACCESS_KEY", name == "AWS_SESSION_TOKEN":
			all[name] = value
		}
	}
	return all
}

// serve serves a handler on loopback until Close.
func (it *Local) serve(h http.Handler) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	it.servers = append(it.servers, server)
	go server.Serve(l) // until Close
	return "http://" + l.Addr().String(), nil
}

// Describe returns the description.
func (d Description) Describe() Description { return d }

// Getenv is what a program that works with the stack's data finds in its
// environment.
func (d Description) Getenv(name string) string {
	switch name {
	case "FERRY_TABLE":
		return d.Table
	case "FERRY_FILES_BUCKET":
		return d.FilesBucket
	case "FERRY_BACKUP_BUCKET":
		return d.BackupBucket
	case "FERRY_KEY_PARAMETER":
		return d.KeyParameter
	}
	switch {
	case name == "AWS_ENDPOINT_URL_SSM" && d.Parameters != "":
		return d.Parameters
	case d.Endpoint != "" && strings.HasPrefix(name, "AWS_ENDPOINT_URL_"):
		return d.Endpoint
	}
	return os.Getenv(name)
}

// Ports opens the stack's data in this process, as an operator's commands do.
func (d Description) Ports(ctx context.Context) (*api.Ports, error) {
	settings := api.Settings{PublicURL: d.Base}
	settings.Retention.KeepDays, settings.Retention.BackupDays = 30, 90 // as the template has it
	return boot.OpenPorts(ctx, settings, d.Getenv, boot.Table, boot.Blobs, boot.LinkKey)
}

// Close ends the API and all processes.
func (it *Local) Close() error {
	var errs []error
	for _, s := range it.servers {
		errs = append(errs, s.Close())
	}
	if it.Assembly != nil {
		errs = append(errs, it.Assembly.Close())
	}
	return errors.Join(errs...)
}
