package apitest

import (
	"fmt"
	"strings"
	"testing"

	"ferry/shared/fault"
)

// Tell does each step of a script. After > stands how what a step says begins, which is the status of a
// fault, and words that follow. A step without > says nothing.
func Tell(t testing.TB, script string, do func(step string) error) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
		step, want, _ := strings.Cut(strings.TrimSpace(line), " > ")
		begins, words, _ := strings.Cut(want, " ")
		says := ""
		if err := do(step); err != nil {
			says = err.Error()
			if f := fault.Of(err); f != nil {
				says = fmt.Sprint(int(f.Kind), " ", says)
			}
		}
		if (says == "") != (want == "") ||
			!strings.HasPrefix(says, begins) ||
			!strings.Contains(says, words) {
			t.Fatalf("%s: %s, want %q", step, says, want)
		}
	}
}

// Once runs f before the next call with that name.
func (c *Calls) Once(name string, f func()) {
	c.Before(name, func() error {
		c.Before(name, nil)
		f()
		return nil
	})
}

// Stories tells scripts, each in a test of its own, for which begin returns what does a step.
func Stories(
	t *testing.T,
	scripts map[string]string,
	begin func(t *testing.T) (do func(step string) error),
) {
	t.Helper()
	for what, script := range scripts {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			Tell(t, script, begin(t))
		})
	}
}
