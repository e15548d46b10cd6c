// Start measures how long each function takes from the start of its process to
// its first poll of the runtime API, and its size as built for the cloud,
// against a function that does nothing. Next to stand-ins for AWS it also sends
// each its event of events/, and the largest uploads, and measures answers and
// memory:
//
//	go run ./infra/awslocal -- go run ./infra/bench/start
//
// It prints a table, and fails if a figure is beyond its bound.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ferry/infra/lambdahost"
)

const (
	maxRatio = 2.5
	maxSize  = 12_000_000 // bytes
	control  = "empty"
)

// program is a function, built.
type program struct {
	name   string
	path   string // for this machine
	size   int64  // for the cloud
	starts []time.Duration
	answer *lambdahost.Result // to its event, if there are stand-ins
}

// figures are what is measured.
type figures struct {
	programs []*program // the control first
	uploads  []upload
}

// upload is one of the largest, and the most memory that it took.
type upload struct {
	form bool
	peak int64
}

func main() {
	runs := flag.Int("runs", 40, "starts of each function")
	quick := flag.Bool("quick", false, "20 starts of each function")
	flag.Parse()
	if *quick {
		*runs = 20
	}
	if err := run(context.Background(), *runs); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, runs int) error {
	dir, err := os.MkdirTemp("", "ferry-start-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := figures{}
	if f.programs, err = build(ctx, dir); err != nil {
		return err
	}
	// In turn, so that what else the machine does falls on all alike.
	for range runs {
		for _, p := range f.programs {
			took, err := start(ctx, p.path)
			if err != nil {
				return err
			}
			p.starts = append(p.starts, took)
		}
	}
	if os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != "" {
		if err := f.answers(ctx, filepath.Join(dir, machine)); err != nil {
			return err
		}
	}
	return f.report(os.Stdout)
}

// start runs a function until its first poll, and tells how long that took.
func start(ctx context.Context, path string) (time.Duration, error) {
	host := lambdahost.New(lambdahost.Function{Name: filepath.Base(path), Program: path, Log: os.Stderr, Environment: map[string]string{
		"AWS_REGION": "eu-south-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session",
		"FERRY_TABLE": "table", "FERRY_FILES_BUCKET": "files", "FERRY_BACKUP_BUCKET": "backup", "FERRY_KEY_PARAMETER": "/ferry/link-key",
		"FERRY_NOTICES_TOPIC": "arn:aws:sns:eu-south-1:123456789012:notices", "FERRY_EVENTS_TOPIC": "arn:aws:sns:eu-south-1:123456789012:events",
		"FERRY_QUEUE": "https://sqs.eu-south-1.amazonaws.com/123456789012/mail", "FERRY_MAIL_FROM": "ferry@example.com", "FERRY_MAIL_EVENTS": "ferry-mail",
	}})
	defer host.Close()
	return host.Start(ctx)
}

func (p *program) median() time.Duration {
	sorted := slices.Sorted(slices.Values(p.starts))
	return sorted[len(sorted)/2]
}
