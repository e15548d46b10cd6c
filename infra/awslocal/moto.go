package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

const motoName = "moto"

//go:embed moto/requirements.txt
var motoRequirements []byte

// installMoto makes a Python environment with moto, the stand-in for SNS, SQS
// and SES. Its other services stay unused.
func installMoto(ctx context.Context, cache string) (string, error) {
	return once(cache, motoName, [][]byte{motoRequirements}, func(dir string) error {
		requirements := filepath.Join(dir, "requirements.txt")
		if err := os.WriteFile(requirements, motoRequirements, 0o644); err != nil {
			return err
		}
		if err := tool(ctx, dir, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return tool(ctx, dir, motoPython(dir), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", requirements)
	})
}

func motoPython(dir string) string { return filepath.Join(dir, "bin", "python3") }

// startMoto starts moto, which keeps all in memory.
func startMoto(ctx context.Context, dir string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return start(ctx, motoName, port, nil, motoPython(dir), "-m", "moto.server", "-H", "127.0.0.1", "-p", fmt.Sprint(port))
}
