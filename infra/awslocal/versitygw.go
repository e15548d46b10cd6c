package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	versityName    = "versitygw"
	versityPackage = "github.com/versity/versitygw/cmd/versitygw"
)

// What the stand-ins are reached with. They guard nothing but test data.
const (
	region    = "us-east-1"
	accessKey = "ferrytest"
	secretKey = "ferrytestsecret"
)

// copyThreshold is the size, in bytes, above which the S3 stand-in refuses a
// copy in one call. S3's own is 5 GiB, too much for a test.
const copyThreshold = 24 << 20

// installVersitygw builds the version that versitygw/go.mod names. That module
// is apart from Ferry's, whose go.mod has none of its dependencies.
func installVersitygw(ctx context.Context, cache string) (string, error) {
	module, err := versityModule(ctx)
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", err
	}
	inputs := [][]byte{sums, []byte(runtime.Version()), []byte(runtime.GOARCH)}
	return once(cache, versityName, inputs, func(dir string) error {
		return tool(ctx, module, "go", "build", "-trimpath", "-ldflags=-s -w",
			"-o", filepath.Join(dir, versityName), versityPackage)
	})
}

// versityModule asks Go for the folder of this program's source, because the
// working directory can be any folder of the module.
func versityModule(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "ferry/infra/awslocal").Output()
	if err != nil {
		return "", fmt.Errorf("finding the source of awslocal (run it inside Ferry's checkout): %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), versityName), nil
}

// startS3 starts versitygw with its objects and buckets as files and folders
// under data. It keeps metadata in files too: not every file system for
// temporary files has extended attributes.
func startS3(ctx context.Context, dir, data string) (*server, error) {
	buckets, metadata := filepath.Join(data, "buckets"), filepath.Join(data, "metadata")
	for _, folder := range []string{metadata, filepath.Join(buckets, filesBucket), filepath.Join(buckets, backupBucket)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	return start(ctx, versityName, func(port int) *exec.Cmd {
		cmd := exec.Command(filepath.Join(dir, versityName),
			"--port", fmt.Sprintf("127.0.0.1:%d", port), "--region", region, "--quiet", "--keep-alive",
			"--copy-object-threshold", fmt.Sprint(copyThreshold), "posix", "--sidecar", metadata, buckets)
		cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+accessKey, "ROOT_SECRET_ACCESS_KEY="+secretKey)
		return cmd
	})
}
