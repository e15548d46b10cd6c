package main

import (
	"fmt"
	"maps"

	"ferry/infra/template"
)

// book is what is needed to tell what something costs.
type book struct {
	rates
	memory map[string]int // MB, by function
	counts map[string]*count
	order  []*count
}

func newBook(t template.Template, counts []*count) (*book, error) {
	functions, err := template.Stack{Template: t, Values: placeholders(t)}.Functions()
	if err != nil {
		return nil, err
	}
	b := &book{rates: newRates(), memory: map[string]int{}, counts: map[string]*count{}, order: counts}
	for _, f := range functions {
		b.memory[f.Name] = f.Memory
	}
	for _, c := range counts {
		b.counts[c.Operation] = c
		for name := range c.Runs {
			if b.memory[name] == 0 {
				return nil, fmt.Errorf("%s: the template has no function %s", c.Operation, name)
			}
		}
	}
	return b, nil
}

// placeholders are values for all that a template refers to: of resources their own
// names, which are as good as any.
func placeholders(t template.Template) map[string]string {
	values := map[string]string{}
	for id := range t.Resources {
		values[id] = id
	}
	for _, name := range []string{"StackName", "Region", "Partition", "AccountId", "URLSuffix"} {
		values["AWS::"+name] = name
	}
	return values
}

// units are all that is charged for a count.
func (b *book) units(c *count) map[unit]float64 {
	all := maps.Clone(c.Units)
	for name, r := range c.Runs {
		all[gbSeconds] += r.seconds(b.memory[name]) * float64(b.memory[name]) / 1024
	}
	return all
}

// usd is what an operation costs once.
func (b *book) usd(operation string) float64 { return b.of(b.units(b.counts[operation])) }

// perFile is what a sweep costs for each file, whether it stays, is
// moved or is removed. A list of a thousand objects is one request.
func (b *book) perFile(sweep string) float64 {
	return (b.usd(sweep)-b.usd(sweepEmpty))/areaSize + b.rates[puts]/1000
}

// life is what a file costs after its upload, but for its storage: the sweeps
// of all its days, the way to the backup area, and its end.
func (b *book) life(keepDays, backupDays int) float64 {
	return float64(keepDays+backupDays)*b.perFile(sweepStay) + b.perFile(sweepMove) + b.perFile(sweepPurge)
}
