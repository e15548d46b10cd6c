// Command deploy is the first step of `make deploy`, before minutes go into a build: it finds
// the AWS region, or asks for it, and checks the credentials. It prints the region.
//
// Beside it are the ways to run ferry serve in production, and tests that try them: a
// systemd unit, an image, nginx and Caddy, fail2ban, releases, and certificates by ACME.
// A test of a tool that is not installed is skipped. Nothing imports this package; start
// reading with begin.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func main() {
	region, err := begin(context.Background(), os.Stdin, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
	fmt.Println(region)
}

// begin returns the region in which the credentials work.
func begin(ctx context.Context, in io.Reader, out io.Writer) (region string, err error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		fmt.Fprint(out, "AWS region, such as eu-west-1: ")
		if _, err := fmt.Fscanln(in, &cfg.Region); err != nil {
			return "", errors.New("nothing was deployed: say the region, here or in AWS_REGION")
		}
	}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", fmt.Errorf(
			"nothing was deployed: the AWS credentials do not work (AWS_PROFILE names a profile): %w", err,
		)
	}
	fmt.Fprintf(out, "deploying to %s, as %s\n", cfg.Region, aws.ToString(who.Arn))
	return cfg.Region, nil
}
