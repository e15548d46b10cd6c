package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// asking puts questions to a person on a terminal, and otherwise takes answers
// from standard input, a line each, if stdin allows that.
type asking struct {
	ctx      context.Context // of the command that asks
	out      console
	terminal *os.File // nil if there is none
	lines    *bufio.Reader
}

// asker uses the terminal on standard input, or that of the process if standard
// input is something else, and a person sees standard error.
func asker(ctx context.Context, out console) *asking {
	a := &asking{ctx: ctx, out: out}
	if isTerminal(out.In) {
		a.terminal = out.In.(*os.File)
	} else if isTerminal(out.Err) {
		if tty, err := os.Open("/dev/tty"); err == nil {
			a.terminal = tty
		}
	}
	if a.terminal != nil {
		a.lines = bufio.NewReader(a.terminal)
	}
	return a
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// fromStdin takes the answers from standard input if there is no terminal.
func (a *asking) fromStdin() *asking {
	if a.lines == nil {
		a.lines = bufio.NewReader(io.LimitReader(a.out.In, 64<<10))
	}
	return a
}

func (a *asking) line(question string) (string, error) {
	if a.lines == nil {
		return "", usage("there is no terminal to ask on: use --user and --password-stdin, or FERRY_USER and FERRY_PASSWORD")
	}
	fmt.Fprint(a.out.Err, question)
	text, err := await(a.ctx, func() (string, error) { return a.lines.ReadString('\n') })
	if a.ctx.Err() != nil {
		return "", err
	}
	if err != nil && (err != io.EOF || text == "") {
		return "", usage("there was no answer")
	}
	if a.terminal == nil {
		fmt.Fprintln(a.out.Err)
	}
	return strings.TrimRight(text, "\r\n"), nil
}

// secret is line for an answer that the terminal must not show.
func (a *asking) secret(question string) (string, error) {
	if a.terminal == nil {
		return a.line(question)
	}
	fd := int(a.terminal.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("asking on the terminal: %w", err)
	}
	fmt.Fprint(a.out.Err, question)
	text, err := await(a.ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	fmt.Fprintln(a.out.Err)
	if a.ctx.Err() != nil {
		_ = term.Restore(fd, before) // or it would keep hiding what is typed
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("reading an answer: %w", err)
	}
	return string(text), nil
}

// password is that of the environment, or else is asked for.
func (a *asking) password(question string) (string, error) {
	if password := os.Getenv("FERRY_PASSWORD"); password != "" {
		return password, nil
	}
	return a.secret(question)
}

// readLine reads one line that is a password.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(interruptible{ctx, in}, 4096)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// await is f, or the context's error as soon as that has ended: a read from a
// terminal or a pipe cannot be stopped, and lasts until the process ends.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	got := make(chan result, 1)
	go func() {
		v, err := f()
		got <- result{v, err}
	}()
	select {
	case <-ctx.Done():
		return *new(T), ctx.Err()
	case r := <-got:
		return r.value, r.err
	}
}
