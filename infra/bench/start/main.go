// Start measures how long each function takes from the start of its process to
// its first poll of the runtime API, and its size as built for the cloud,
// against a function that does nothing. It prints a table, and fails if a
// figure is beyond its bound.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

const (
	maxRatio = 2.5
	maxSize  = 12_000_000 // bytes
	control  = "(empty function)"
)

// program is a function, built.
type program struct {
	name   string
	path   string // for this machine
	size   int64  // for the cloud
	starts []time.Duration
}

func main() {
	runs := flag.Int("runs", 40, "starts of each function")
	quick := flag.Bool("quick", false, "10 starts of each function")
	flag.Parse()
	if *quick {
		*runs = 10
	}
	if err := run(context.Background(), *runs); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, runs int) error {
	dir, err := os.MkdirTemp("", "ferry-start-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs, err := build(ctx, dir)
	if err != nil {
		return err
	}
	api, err := listen()
	if err != nil {
		return err
	}
	defer api.Close()
	// In turn, so that what else the machine does falls on all alike.
	for range runs {
		for _, p := range programs {
			took, err := api.start(ctx, p.path)
			if err != nil {
				return fmt.Errorf("starting %s: %w", p.name, err)
			}
			p.starts = append(p.starts, took)
		}
	}
	return report(programs)
}

// build builds the control, which comes first, and all functions.
func build(ctx context.Context, dir string) ([]*program, error) {
	mains, err := filepath.Glob("functions/*/main.go")
	if err != nil || len(mains) == 0 {
		return nil, errors.Join(err, errors.New("there are no functions here: run it in the module's root"))
	}
	programs := []*program{{name: control}}
	packages := []string{"./infra/bench/start/empty"}
	for _, main := range mains {
		programs = append(programs, &program{name: filepath.Base(filepath.Dir(main))})
		packages = append(packages, "./"+filepath.Dir(main))
	}
	fmt.Fprintf(os.Stderr, "building %d functions, for this machine and for the cloud ...\n", len(mains))
	for i, p := range programs {
		p.path = filepath.Join(dir, fmt.Sprint(i))
		cloud := p.path + ".arm64"
		if err := errors.Join(compile(ctx, packages[i], p.path), compile(ctx, packages[i], cloud, "GOOS=linux", "GOARCH=arm64")); err != nil {
			return nil, err
		}
		info, err := os.Stat(cloud)
		if err != nil {
			return nil, err
		}
		p.size = info.Size()
	}
	return programs, nil
}

// compile builds like `make build`.
func compile(ctx context.Context, pkg, to string, environment ...string) error {
	c := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", to, pkg)
	c.Env = append(append(os.Environ(), "CGO_ENABLED=0"), environment...)
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("building %s: %w", pkg, err)
	}
	return nil
}

func (p *program) median() time.Duration {
	sorted := slices.Sorted(slices.Values(p.starts))
	return sorted[len(sorted)/2]
}

func report(programs []*program) error {
	var bad []error
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "function\tsize (MB)\tstart (ms)\tratio\t\n")
	base := programs[0].median()
	for _, p := range programs {
		ratio := float64(p.median()) / float64(base)
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.2f\t\n", p.name, float64(p.size)/1e6, float64(p.median().Microseconds())/1e3, ratio)
		if ratio > maxRatio {
			bad = append(bad, fmt.Errorf("%s takes %.2f times as long to start as an empty function, more than %.1f", p.name, ratio, maxRatio))
		}
		if p.size > maxSize {
			bad = append(bad, fmt.Errorf("%s has %d bytes, more than %d", p.name, p.size, maxSize))
		}
	}
	fmt.Fprintf(w, "at most\t%.0f\t\t%.1f\t\n", float64(maxSize)/1e6, maxRatio)
	return errors.Join(append(bad, w.Flush())...)
}
