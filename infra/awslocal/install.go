package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// install brings all stand-ins into the cache and returns their folders. It installs
// them in parallel, because some wait for the network and one for the compiler.
func install(ctx context.Context, all []standIn) ([]string, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	dirs, errs := make([]string, len(all)), make([]error, len(all))
	var installs sync.WaitGroup
	for i, s := range all {
		installs.Go(func() {
			dirs[i], errs[i] = once(cache, s.name, s.inputs, func(dir string) error {
				return s.install(ctx, dir)
			})
		})
	}
	installs.Wait()
	return dirs, errors.Join(errs...)
}

func cacheDir() (string, error) {
	if dir := os.Getenv("FERRY_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for the cache (set FERRY_CACHE): %w", err)
	}
	return filepath.Join(dir, "ferry"), nil
}

// once returns the folder in the cache for a name and the exact inputs of its installation. If the
// folder is missing, fill makes it under another name, and then it is renamed. So a folder that
// exists is complete, and two installations at once do not harm each other.
func once(cache, name string, inputs [][]byte, fill func(dir string) error) (string, error) {
	hash := sha256.New()
	for _, in := range inputs {
		fmt.Fprintf(hash, "%d:%s", len(in), in)
	}
	dir := filepath.Join(cache, fmt.Sprintf("%s-%x", name, hash.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	aside, err := os.MkdirTemp(cache, name+"-incomplete-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(aside)
	progress("installing %s into %s ...", name, dir)
	if err = fill(aside); err == nil {
		err = os.Rename(aside, dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("installing %s: %w", name, err)
	}
	return dir, nil
}

// tool runs an installer with its output on standard error.
func tool(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
