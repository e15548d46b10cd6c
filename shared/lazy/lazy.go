// Package lazy compiles regular expressions when they are first used. Compiled at the start, those of a whole
// program would delay each function's first answer.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that returns the expression, compiled once. It panics if the pattern is malformed.
func Regexp(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
