package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

const ministackName = "ministack"

//go:embed ministack/requirements.txt
var ministackRequirements []byte

// installMinistack makes a Python environment with ministack, an emulator of
// AWS that deploys whole stacks, and AWS's own SAM translator.
func installMinistack(ctx context.Context, cache string) (string, error) {
	return installPython(ctx, cache, ministackName, ministackRequirements)
}

// startMinistack starts ministack, which keeps all in memory and lets functions
// do only what their roles allow. It unpacks their programs into the folder for
// temporary files and leaves them there, so that it has one of its own under data.
func startMinistack(ctx context.Context, dir, data string) (*server, error) {
	temporary := filepath.Join(data, ministackName)
	if err := os.Mkdir(temporary, 0o700); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	env := []string{
		"TMPDIR=" + temporary,
		"BIND_HOST=127.0.0.1", "MINISTACK_HOST=127.0.0.1", fmt.Sprintf("GATEWAY_PORT=%d", port),
		"AUTH=true", "LAMBDA_EXECUTOR=local", "AWS_ENDPOINT_URL=" + url,
		"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_EC2_METADATA_DISABLED=true",
	}
	return start(ctx, ministackName, port, env, pythonOf(dir), "-m", "ministack")
}
