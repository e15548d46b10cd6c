package main

import (
	"context"
	_ "embed"
	"fmt"
)

const motoName = "moto"

//go:embed moto/requirements.txt
var motoRequirements []byte

// installMoto makes a Python environment with moto, the stand-in for SNS, SQS
// and SES. Its other services stay unused.
func installMoto(ctx context.Context, cache string) (string, error) {
	return installPython(ctx, cache, motoName, motoRequirements)
}

// startMoto starts moto, which keeps all in memory.
func startMoto(ctx context.Context, dir string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return start(ctx, motoName, port, nil, pythonOf(dir), "-m", "moto.server", "-H", "127.0.0.1", "-p", fmt.Sprint(port))
}
