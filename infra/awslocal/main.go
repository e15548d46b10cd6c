// Command awslocal runs a command beside stand-ins for AWS on this machine: DynamoDB
// Local, which is Amazon's own, versitygw, an S3 server, and ministack, an emulator
// of all of AWS, to which whole stacks are deployed.
//
//	go run ./infra/awslocal -- go test ./shared/table/dynamo ./shared/blob/s3
//	go run ./infra/awslocal
//
// The first form gives the command an environment in which the AWS SDK finds the
// stand-ins, and exits with the command's code. The second prints that environment
// for a shell and runs until Ctrl-C. Data is kept only while they run. The first
// run installs what is missing into a cache (FERRY_CACHE, by default in the user's
// cache folder); Java 17, Maven, Python 3 with venv, and Go must be installed.
//
// A GET of FERRY_TEST_STACKS lends a deployed stack without data: see Lend in
// infra/stack/emulated. Nothing imports this package; start reading with run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"ferry/infra/stack/emulated"
)

func main() {
	// Linux ends the servers with the thread that started them, so that thread
	// must last as long as the process.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "awslocal:", err)
	}
	os.Exit(code)
}

// run returns the exit code: the command's own, or 1 with an error.
func run(ctx context.Context, args []string) (int, error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	s3, err := versitygw()
	if err != nil {
		return 1, fmt.Errorf("finding the source of awslocal: %w", err)
	}
	all := []standIn{dynamoDB(), s3, ministack()}
	dirs, err := install(ctx, all)
	if err != nil {
		return 1, err
	}
	data, err := os.MkdirTemp("", "ferry-awslocal-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(data)
	for _, f := range []string{"metadata", "versions", "buckets", "programs"} {
		if err := os.MkdirAll(filepath.Join(data, f), 0o700); err != nil {
			return 1, err
		}
	}
	urls := make([]string, len(all))
	for i, s := range all {
		url, stop, err := s.start(ctx, dirs[i], data)
		if err != nil {
			return 1, err
		}
		defer stop()
		urls[i] = url
	}
	dynamo, err := inFront(urls[0])
	if err != nil {
		return 1, err
	}
	env := environment(dynamo, urls[1], urls[2], pythonOf(dirs[2]))
	stacks, err := lendStacks(ctx, env)
	if err != nil {
		return 1, err
	}
	env = append(env, "FERRY_TEST_STACKS="+stacks)
	if len(args) == 0 {
		for _, e := range env {
			fmt.Println("export", e)
		}
		progress("running until Ctrl-C")
		<-ctx.Done()
		return 0, nil
	}
	return command(ctx, args, env)
}

// environment makes the AWS SDK and the tests use the stand-ins, and not the user's
// own AWS profile.
func environment(dynamoURL, s3URL, cloudURL, python string) []string {
	return []string{
		"AWS_ENDPOINT_URL_DYNAMODB=" + dynamoURL,
		"AWS_ENDPOINT_URL_S3=" + s3URL,
		"AWS_ENDPOINT_URL_SNS=" + cloudURL,
		"AWS_ENDPOINT_URL_SQS=" + cloudURL,
		"AWS_ENDPOINT_URL_SESV2=" + cloudURL,
		"AWS_REGION=" + region,
		"AWS_ACCESS_KEY_ID=" + accessKey,
		"AWS_SECRET_ACCESS_KEY=" + secretKey,
		"AWS_SESSION_TOKEN=",
		"AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=" + os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"FERRY_TEST_AWS=1",
		emulated.AddressVariable + "=" + cloudURL,
		emulated.PythonVariable + "=" + python,
	}
}

// lendStacks lends stacks until this process ends. They come from the checkout in the
// working directory, which is built when the first one is borrowed.
func lendStacks(ctx context.Context, env []string) (address string, err error) {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if err := os.Setenv(name, value); err != nil {
			return "", err
		}
	}
	open := func() (*emulated.Cloud, error) { return emulated.Open(ctx, ".", ".") }
	address, _, err = emulated.Serve(emulated.Lend(open))
	return address, err
}

// command runs args, and interrupts it when the context ends.
func command(ctx context.Context, args, env []string) (int, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("running %s: %w", strings.Join(args, " "), err)
	}
	return 0, nil
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "awslocal: "+format+"\n", args...)
}
