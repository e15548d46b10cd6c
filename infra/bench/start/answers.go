package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"ferry/infra/assembly"
	"ferry/infra/lambdahost"
	"ferry/shared/boot/fixture"
)

// answers sends each function its event, and the largest uploads, each on data
// of its own.
func (f *figures) answers(ctx context.Context, programs string) error {
	fmt.Fprintln(os.Stderr, "sending each function its event ...")
	for _, p := range f.programs[1:] {
		err := with(ctx, programs, p.name, func(it *assembly.Fixtures) (err error) {
			p.answer, err = answer(ctx, it, p.name)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for _, form := range []bool{true, false} {
		err := with(ctx, programs, "upload", func(it *assembly.Fixtures) error {
			peak, err := it.LargestUpload(ctx, form)
			f.uploads = append(f.uploads, upload{form, peak})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// with makes a stack for the fixture of a function.
func with(ctx context.Context, programs, name string, do func(*assembly.Fixtures) error) error {
	f, err := fixture.Load(".", name)
	if err != nil {
		return err
	}
	it, err := assembly.StartFixtures(ctx, assembly.LocalConfig{Root: ".", Programs: programs, Name: "start-" + strings.ToLower(rand.Text())}, f)
	if err != nil {
		return err
	}
	return errors.Join(do(it), it.Close())
}

func answer(ctx context.Context, it *assembly.Fixtures, name string) (*lambdahost.Result, error) {
	r, err := it.Hosts[name].Invoke(ctx, it.Event())
	if err != nil {
		return nil, err
	}
	return &r, it.Check(r.Payload)
}
