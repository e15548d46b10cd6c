package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const ministackName = "ministack"

//go:embed ministack/requirements.txt
var ministackRequirements []byte

//go:embed ministack/whole.py
var ministackProgram string

// installMinistack makes a Python environment with ministack, an emulator of
// AWS that deploys whole stacks, and with what AWS reads templates with: the SAM
// translator, and of the SAM command what writes out loops. The list of packages
// is complete: that command's others are not wanted.
func installMinistack(ctx context.Context, cache string) (string, error) {
	return once(cache, ministackName, [][]byte{ministackRequirements}, func(dir string) error {
		requirements := filepath.Join(dir, "requirements.txt")
		if err := os.WriteFile(requirements, ministackRequirements, 0o644); err != nil {
			return err
		}
		if err := tool(ctx, dir, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return tool(ctx, dir, pythonOf(dir), "-m", "pip", "install", "-q", "--no-deps", "-r", requirements)
	})
}

func pythonOf(dir string) string { return filepath.Join(dir, "bin", "python3") }

// startMinistack starts ministack, which keeps all in memory and lets functions
// do only what their roles allow. It unpacks their programs into the folder for
// temporary files and leaves them there, so that it has one of its own under data.
func startMinistack(ctx context.Context, dir, data string) (*server, error) {
	temporary := filepath.Join(data, ministackName)
	if err := os.Mkdir(temporary, 0o700); err != nil {
		return nil, err
	}
	return start(ctx, ministackName, func(port int) *exec.Cmd {
		cmd := exec.Command(pythonOf(dir), "-c", ministackProgram)
		cmd.Env = append(os.Environ(),
			"TMPDIR="+temporary, "BIND_HOST=127.0.0.1", "MINISTACK_HOST=127.0.0.1", fmt.Sprintf("GATEWAY_PORT=%d", port),
			"AUTH=true", "LAMBDA_EXECUTOR=local", fmt.Sprintf("AWS_ENDPOINT_URL=http://127.0.0.1:%d", port),
			"AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey, "AWS_EC2_METADATA_DISABLED=true")
		return cmd
	})
}
