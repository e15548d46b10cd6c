package web

import (
	"maps"
	"slices"
)

// Views returns the pages, by method and name.
func Views() []string { return slices.Sorted(maps.Keys(views())) }

// WithoutComments is what is served of a script.
func WithoutComments(script string) string { return string(withoutComments([]byte(script))) }
