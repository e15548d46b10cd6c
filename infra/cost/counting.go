package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"

	"ferry/infra/template"
	"ferry/shared/blob"
)

// countAll counts all operations on the stand-ins for AWS. Each runs several
// times: what it does must be the same each time, and of the functions' own
// time the least counts.
func countAll(ctx context.Context, t template.Template, repeats int) ([]*count, error) {
	s, err := begun(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := s.fill(ctx, blob.Backup); err != nil {
		return nil, fmt.Errorf("filling the areas: %w", err)
	}
	var all []*count
	for _, o := range operations() {
		c, err := s.counted(ctx, o, repeats)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.name, err)
		}
		all = append(all, c)
	}
	if s, err = begun(ctx, t); err != nil {
		return nil, err
	}
	for _, o := range sweeps() {
		c, err := s.counted(ctx, o, 1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func begun(ctx context.Context, t template.Template) (*stage, error) {
	l, err := newLab(ctx, t)
	if err != nil {
		return nil, err
	}
	return newStage(ctx, l)
}

func (s *stage) counted(ctx context.Context, o operation, times int) (*count, error) {
	var all *count
	for range times {
		do, err := o.prepare(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("preparing: %w", err)
		}
		if _, err := s.fresh(ctx); err != nil { // those are not of the operation
			return nil, err
		}
		s.begin(o.name)
		if err := do(); err != nil {
			return nil, err
		}
		if err := s.settled(ctx); err != nil {
			return nil, fmt.Errorf("what follows: %w", err)
		}
		c := s.end()
		if all == nil {
			all = c
			continue
		}
		if err := all.differs(c); err != nil {
			return nil, fmt.Errorf("it is not the same each time: %w", err)
		}
		for name, r := range c.Runs {
			all.Runs[name].Own = min(all.Runs[name].Own, r.Own)
		}
	}
	for _, r := range all.Runs {
		r.Own = math.Round(max(r.Own, 0)*10) / 10
	}
	return all, nil
}

// slack is by how much bytes of logs and answers may differ: they hold times and
// random names, and a word more in a line is no reason to count again.
const slack = 0.2

// differs tells where another count of the same operation differs, but for the
// functions' own time.
func (c *count) differs(other *count) error {
	if !maps.Equal(c.Beside, other.Beside) {
		return fmt.Errorf("calls beside: %v and %v", c.Beside, other.Beside)
	}
	if len(c.Runs) != len(other.Runs) {
		return fmt.Errorf("other functions run")
	}
	for name, r := range c.Runs {
		o := other.Runs[name]
		if o == nil || r.Events != o.Events || !maps.Equal(r.Calls, o.Calls) {
			return fmt.Errorf("%s: %+v and %+v", name, r, o)
		}
	}
	for u, n := range c.Units {
		o := other.Units[u]
		if exact := u != logBytes && u != outBytes; exact && o != n || math.Abs(o-n) > slack*n {
			return fmt.Errorf("%s: %v and %v", u, n, o)
		}
	}
	return nil
}

func readCounts(path string) (all []*count, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was counted: %w", err)
	}
	return all, nil
}

func writeCounts(path string, all []*count) error {
	text, err := json.MarshalIndent(all, "", "\t")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing what was counted: %w", err)
	}
	return nil
}
