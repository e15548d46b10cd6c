package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// asking puts questions to a person on a terminal, and otherwise takes answers
// from standard input, a line each, if stdin allows that.
type asking struct {
	out      console
	terminal *os.File // nil if there is none
	lines    *bufio.Reader
}

// asker uses the terminal on standard input, or that of the process if standard
// input is something else, and a person sees standard error.
func asker(out console) *asking {
	a := &asking{out: out}
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

// possible tells whether there is a person to ask.
func (a *asking) possible() bool { return a.terminal != nil }

// fromStdin makes answers come from standard input where nobody can be asked.
func (a *asking) fromStdin() *asking {
	if a.lines == nil {
		a.lines = bufio.NewReader(io.LimitReader(a.out.In, 64<<10))
	}
	return a
}

func (a *asking) line(question string) (string, error) {
	if a.lines == nil {
		return "", &coded{exitUsage, errors.New("there is no terminal to ask on: use --user and --password-stdin, or FERRY_USER and FERRY_PASSWORD")}
	}
	fmt.Fprint(a.out.Err, question)
	text, err := a.lines.ReadString('\n')
	if err != nil && (err != io.EOF || text == "") {
		return "", &coded{exitUsage, errors.New("there was no answer")}
	}
	if a.terminal == nil {
		fmt.Fprintln(a.out.Err)
	}
	return strings.TrimRight(text, "\r\n"), nil
}

// secret is line for what the terminal must not show.
func (a *asking) secret(question string) (string, error) {
	if a.terminal == nil {
		return a.line(question)
	}
	fmt.Fprint(a.out.Err, question)
	text, err := term.ReadPassword(int(a.terminal.Fd()))
	fmt.Fprintln(a.out.Err)
	if err != nil {
		return "", fmt.Errorf("reading an answer: %w", err)
	}
	return string(text), nil
}

// readLine reads one line that is a password.
func readLine(in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(in, 4096)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}
