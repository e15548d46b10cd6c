// Command types type-checks packages and their imports for another platform, so that a fault in a
// file for that platform is found without compiling. It skips function bodies in third-party code.
//
//	go run ./infra/ci/types darwin/arm64 ./infra/ferry
//	go run ./infra/ci/types linux/arm64 -tags lambda.norpc ./functions/...
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: types GOOS/GOARCH [FLAGS OF go list] PACKAGES")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	fmt.Println(os.Args[1], strings.Join(os.Args[2:], " "))
}

// listed is a package, as go list describes it.
type listed struct {
	Dir, ImportPath string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

// known maps import paths to the packages that were checked.
type known map[string]*types.Package

// check checks packages in the order of go list, in which imports come first.
func check(platform string, packages []string) error {
	system, processor, _ := strings.Cut(platform, "/")
	list := exec.Command("go", append([]string{
		"list",
		"-deps",
		"-json=Dir,ImportPath,GoFiles,ImportMap,Module",
	}, packages...)...)
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return err
	}
	all := known{"unsafe": types.Unsafe}
	sizes := types.SizesFor("gc", processor)
	for in := json.NewDecoder(bytes.NewReader(out)); in.More(); {
		var p listed
		err := in.Decode(&p)
		if err == nil && p.ImportPath != "unsafe" {
			err = all.add(p, sizes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (all known) add(p listed, sizes types.Sizes) error {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(
			fset,
			filepath.Join(p.Dir, name),
			nil,
			parser.SkipObjectResolution,
		)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	ours := p.Module != nil && p.Module.Main
	var faults []error
	config := types.Config{
		Sizes:            sizes,
		IgnoreFuncBodies: !ours,
		Error:            func(err error) { faults = append(faults, err) },
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			if all[path] == nil {
				return nil, fmt.Errorf("%s is not known", path)
			}
			return all[path], nil
		}),
	}
	all[p.ImportPath], _ = config.Check(p.ImportPath, fset, files, nil) // its error is the first fault
	return errors.Join(faults...)
}

type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
