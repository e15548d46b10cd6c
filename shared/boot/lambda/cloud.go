package lambda

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/blob"
	"ferry/shared/limit"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/users"
)

// Opener opens a port on AWS and adds it to the ports. It reports errors to the Cloud.
type Opener func(*Cloud, *service.Ports)

// Table opens the table that FERRY_TABLE names. A main names the backend, so that a
// function links only what it uses.
func Table(open func(aws.Config, string) table.Table) Opener {
	return func(c *Cloud, p *service.Ports) {
		p.Table = open(c.ConfigOf("DYNAMODB"), c.Name("FERRY_TABLE"))
	}
}

// Format refuses data of another format before the first use of a port. It must come after Table.
func Format(c *Cloud, p *service.Ports) {
	c.First(func(ctx context.Context) error { return table.CheckFormat(ctx, p.Table) })
}

// Blobs opens the buckets that FERRY_FILES_BUCKET and FERRY_BACKUP_BUCKET name, with the
// storage class of the settings.
func Blobs[Store interface {
	blob.Store
	blob.Parts
}](open func(c aws.Config, files, backup, backupClass string) Store) Opener {
	return func(c *Cloud, p *service.Ports) {
		store := open(
			c.ConfigOf("S3"),
			c.Name("FERRY_FILES_BUCKET"),
			c.Name("FERRY_BACKUP_BUCKET"),
			c.Settings.BackupClass,
		)
		p.Blobs, p.Parts = store, store
	}
}

// Check refuses settings that an endpoint could not work with.
func Check(settings func(service.Settings) error) Opener {
	return func(c *Cloud, _ *service.Ports) { c.wrong = append(c.wrong, settings(c.Settings)) }
}

// Cloud is what an Opener needs.
type Cloud struct {
	Getenv   func(string) string
	Config   aws.Config
	Settings service.Settings
	wrong    []error                       // errors in the settings; some may be nil
	first    []func(context.Context) error // to be called before a port is used
	mu       sync.Mutex                    // guards first
}

// NewCloud returns the Cloud of a Lambda function, from the variables that Lambda
// sets. The SDK itself would look in many more places, which a function does not have,
// and that code would take a good part of its start.
func NewCloud(getenv func(string) string) *Cloud {
	c := &Cloud{Getenv: getenv, Config: aws.Config{
		// The SDK's defaults are not the zero values.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}}
	c.Config.Region = c.Name("AWS_REGION")
	found := aws.Credentials{
		AccessKeyID:     c.Name("AWS_ACCESS_KEY_ID"),
		SecretAccessKey: c.Name("AWS_SECRET_ACCESS_KEY"),
		SessionToken:    getenv("AWS_SESSION_TOKEN"),
		Source:          "environment",
	}
	c.Config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return found, nil
	})
	return c
}

// CountWait is for a table that other processes use too. It is many times as long as an update takes.
const CountWait = 50 * time.Millisecond

// Ports opens a function's ports. They are complete once Begin has returned nil. The table's stream
// announces what is in the outbox, so nothing else has to. The error names everything that is wrong
// with the settings.
func (c *Cloud) Ports(openers ...Opener) (*service.Ports, error) {
	hasher, err := users.NewHasher(users.DefaultParams(), rand.Reader, time.Now)
	p := &service.Ports{
		Hasher:    hasher,
		Tries:     limit.NewTries(),
		Random:    rand.Reader,
		Now:       time.Now,
		Log:       slog.New(slog.NewJSONHandler(os.Stdout, nil)),
		CountWait: CountWait,
	}
	c.Settings.ASCIIMail = true
	return p, errors.Join(err, c.Open(p, openers...))
}

// Open adds ports to p. Its error names everything that is wrong with the settings.
func (c *Cloud) Open(p *service.Ports, openers ...Opener) error {
	for _, open := range openers {
		open(c, p)
	}
	return errors.Join(c.wrong...)
}

// First registers what must be called before a port is used.
func (c *Cloud) First(f func(context.Context) error) { c.first = append(c.first, f) }

// Begin makes the calls that must come before the ports are used. Once it has returned
// nil they are ready; until then it can be called again.
func (c *Cloud) Begin(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.first) > 0 {
		if err := c.first[0](ctx); err != nil {
			return err
		}
		c.first = c.first[1:]
	}
	return nil
}

// Name reads an environment variable that must be set.
func (c *Cloud) Name(variable string) string {
	v := c.Getenv(variable)
	if v == "" {
		c.wrong = append(c.wrong, fmt.Errorf("%s is not set", variable))
	}
	return v
}

// ConfigOf returns the configuration of an AWS service such as S3, with the address in
// AWS_ENDPOINT_URL_S3 or else AWS_ENDPOINT_URL, if one is set.
func (c *Cloud) ConfigOf(name string) aws.Config {
	cfg := c.Config.Copy()
	for _, variable := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_" + name} {
		if v := c.Getenv(variable); v != "" {
			cfg.BaseEndpoint = &v
			cfg.ConfigSources = nil // otherwise the SDK's own reading of such variables wins
		}
	}
	return cfg
}
