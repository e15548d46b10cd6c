package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// The region and credentials of the stand-ins. They protect only test data.
const (
	region    = "us-east-1"
	accessKey = "ferrytest"
	secretKey = "ferrytestsecret"
)

// copyThreshold is the size, in bytes, above which the S3 stand-in refuses to copy in one call.
// S3's own limit is 5 GiB, too much for a test.
const copyThreshold = 24 << 20

// versitygw is an S3 server that keeps objects and buckets as files and folders. It keeps metadata
// in files too, because not every file system for temporary files has extended attributes. It is
// built in the version that versitygw/go.mod names, a module of its own, so that Ferry's go.mod has
// none of its dependencies.
func versitygw() (standIn, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output() // the working directory can be any of its folders
	module := filepath.Join(strings.TrimSpace(string(root)), "infra", "awslocal", "versitygw")
	sums, unread := os.ReadFile(filepath.Join(module, "go.sum"))
	program, unreadable := os.ReadFile(filepath.Join(module, "main.go"))
	return standIn{
		"versitygw",
		[][]byte{sums, program, []byte(runtime.Version()), []byte(runtime.GOARCH)},
		func(ctx context.Context, dir string) error {
			return tool(ctx, module, "go", "build", "-trimpath", "-ldflags=-s -w",
				"-o", filepath.Join(dir, "versitygw"), ".")
		},
		func(ctx context.Context, dir, data string, port int) *exec.Cmd {
			cmd := exec.CommandContext(ctx, filepath.Join(dir, "versitygw"),
				fmt.Sprintf("127.0.0.1:%d", port), region, fmt.Sprint(copyThreshold), data)
			cmd.Env = append(
				os.Environ(),
				"ROOT_ACCESS_KEY_ID="+accessKey,
				"ROOT_SECRET_ACCESS_KEY="+secretKey,
			)
			return cmd
		},
	}, errors.Join(err, unread, unreadable)
}
