package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed ministack/requirements.txt
var ministackRequirements []byte

//go:embed ministack/patched.py
var ministackProgram string

// ministack is an emulator of AWS that deploys whole stacks. Its Python environment also has AWS's
// code that reads templates: the SAM translator, and the part of the SAM command that expands
// loops. requirements.txt lists all packages explicitly, because most of the packages that the SAM
// command requires are not needed.
//
// It keeps everything in memory and lets functions do only what their roles allow.
// It unpacks their programs into its folder for temporary files and leaves them
// there, so that folder is inside the data directory.
func ministack() standIn {
	return standIn{"ministack", [][]byte{ministackRequirements},
		func(ctx context.Context, dir string) error {
			requirements := filepath.Join(dir, "requirements.txt")
			if err := os.WriteFile(requirements, ministackRequirements, 0o644); err != nil {
				return err
			}
			if err := tool(ctx, dir, "python3", "-m", "venv", dir); err != nil {
				return err
			}
			return tool(
				ctx,
				dir,
				pythonOf(dir),
				"-m",
				"pip",
				"install",
				"-q",
				"--no-compile",
				"--no-deps",
				"-r",
				requirements,
			)
		},
		func(ctx context.Context, dir, data string, port int) *exec.Cmd {
			cmd := exec.CommandContext(ctx, pythonOf(dir), "-c", ministackProgram)
			cmd.Env = append(os.Environ(), "LAMBDA_EXECUTOR=local",
				"TMPDIR="+filepath.Join(
					data,
					"programs",
				), "BIND_HOST=127.0.0.1", "MINISTACK_HOST=127.0.0.1",
				fmt.Sprintf("GATEWAY_PORT=%d",
					port), fmt.Sprintf("AWS_ENDPOINT_URL=http://127.0.0.1:%d",
					port), "AUTH=true",
				"AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey, "AWS_EC2_METADATA_DISABLED=true")
			return cmd
		},
	}
}

func pythonOf(dir string) string { return filepath.Join(dir, "bin", "python3") }
