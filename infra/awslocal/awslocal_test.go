package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestNothingIsInstalledTwice(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "cache")
	fills := 0
	fill := func(dir string) error {
		fills++
		return os.WriteFile(filepath.Join(dir, "program"), []byte("x"), 0o755)
	}
	first, err := once(cache, "thing", [][]byte{[]byte("v1")}, fill)
	if err != nil {
		t.Fatal(err)
	}
	again, err := once(cache, "thing", [][]byte{[]byte("v1")}, fill)
	if err != nil || again != first || fills != 1 {
		t.Errorf("second call: %s, %v after %d installations; want %s after 1", again, err, fills, first)
	}
	other, err := once(cache, "thing", [][]byte{[]byte("v2")}, fill)
	if err != nil || other == first || fills != 2 {
		t.Errorf("other inputs: %s, %v after %d installations; want another folder", other, err, fills)
	}
}

func TestAFailedInstallationIsRepeated(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	broken := errors.New("broken")
	_, err := once(cache, "thing", nil, func(dir string) error {
		os.WriteFile(filepath.Join(dir, "half"), nil, 0o644)
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v, want %v", err, broken)
	}
	dir, err := once(cache, "thing", nil, func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "half")); err == nil {
		t.Error("the failed installation left a file behind")
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*incomplete*")); len(left) > 0 {
		t.Errorf("left %v behind", left)
	}
}

func TestTheCommandGetsTheEnvironmentAndItsExitCodeIsReturned(t *testing.T) {
	t.Parallel()
	code, err := command(t.Context(), []string{"sh", "-c", `test "$AWS_ENDPOINT_URL_S3" = http://s3 && exit 7`},
		environment("http://dynamodb", "http://s3", "http://cloud", "python3"))
	if err != nil || code != 7 {
		t.Errorf("got code %d, %v; want 7", code, err)
	}
	if code, err := command(t.Context(), []string{"/no/such/program"}, nil); err == nil || code == 0 {
		t.Errorf("a missing program gave code %d, %v", code, err)
	}
}

func TestAServerThatEndsAtOnceIsReportedWithItsOutput(t *testing.T) {
	t.Parallel()
	broken := standIn{name: "thing", command: func(ctx context.Context, _, _ string, _ int) *exec.Cmd {
		return exec.CommandContext(ctx, "sh", "-c", "echo no such luck; exit 3")
	}}
	if _, _, err := broken.start(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("got %v, want an error with the server's output", err)
	}
}

func TestMinistackKeepsItsFilesInTheDataFolder(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	for _, folder := range []string{filepath.Join(dir, "bin"), filepath.Join(data, "programs")} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(pythonOf(dir), []byte("#!/bin/sh\ntouch \"${TMPDIR:?}/program\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ministack().start(t.Context(), dir, data); err == nil {
		t.Error("a program that has ended is reported as running")
	}
	if _, err := os.Stat(filepath.Join(data, "programs", "program")); err != nil {
		t.Error(err)
	}
}
