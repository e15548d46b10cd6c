package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The folders of programs for this machine and for the cloud.
const (
	machine = "machine"
	cloud   = "cloud"
)

// build builds the control, which comes first, and all functions.
func build(ctx context.Context, dir string) ([]*program, error) {
	mains, err := filepath.Glob("functions/*/main.go")
	if err != nil || len(mains) == 0 {
		return nil, errors.Join(err, errors.New("there are no functions here: run it in the module's root"))
	}
	fmt.Fprintf(os.Stderr, "building %d functions, for this machine and for the cloud ...\n", len(mains))
	for folder, environment := range map[string][]string{machine: nil, cloud: {"GOOS=linux", "GOARCH=arm64"}} {
		if err := compile(ctx, filepath.Join(dir, folder), environment); err != nil {
			return nil, err
		}
	}
	programs := []*program{{name: control}}
	for _, main := range mains {
		programs = append(programs, &program{name: filepath.Base(filepath.Dir(main))})
	}
	for _, p := range programs {
		p.path = filepath.Join(dir, machine, p.name)
		info, err := os.Stat(filepath.Join(dir, cloud, p.name))
		if err != nil {
			return nil, err
		}
		p.size = info.Size()
	}
	return programs, nil
}

// compile builds like `make build`.
func compile(ctx context.Context, into string, environment []string) error {
	if err := os.Mkdir(into, 0o700); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", into, "./infra/bench/start/"+control, "./functions/...")
	c.Env = append(append(os.Environ(), "CGO_ENABLED=0"), environment...)
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("building the functions: %w", err)
	}
	return nil
}
