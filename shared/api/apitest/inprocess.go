//go:build !stack

package apitest

import "testing"

// remote is for the build with the tag stack: there the same tests run against
// the real programs of the functions.
func remote(testing.TB, int) *Server { return nil }
