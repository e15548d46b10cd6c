// Package stack holds the tests of template.yaml, the description of Ferry in
// AWS: that it fits the endpoints, that each function may do what it does and
// nothing else, and that nothing is left open. It has no other code, so nothing
// imports it. README.md explains the stack; then read template_test.go.
package stack
