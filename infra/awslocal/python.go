package main

import (
	"context"
	"os"
	"path/filepath"
)

// installPython makes a Python environment with pinned packages.
func installPython(ctx context.Context, cache, name string, pinned []byte) (string, error) {
	return once(cache, name, [][]byte{pinned}, func(dir string) error {
		requirements := filepath.Join(dir, "requirements.txt")
		if err := os.WriteFile(requirements, pinned, 0o644); err != nil {
			return err
		}
		if err := tool(ctx, dir, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return tool(ctx, dir, pythonOf(dir), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", requirements)
	})
}

func pythonOf(dir string) string { return filepath.Join(dir, "bin", "python3") }
