package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"ferry/infra/ferry/cli"
	"ferry/shared/fault"
)

// asking puts questions to a person on a terminal. Without one, a command may let
// it take the answers from standard input, a line each.
type asking struct {
	ctx      context.Context // of the command that asks
	out      cli.Console
	terminal *os.File      // nil if there is none
	lines    *bufio.Reader // of the answers; nil if nobody can answer
}

// asker uses the terminal on standard input. If standard input is something else
// but a person sees standard error, it uses the terminal of the process.
func asker(ctx context.Context, out cli.Console) *asking {
	a := &asking{ctx: ctx, out: out}
	if cli.IsTerminal(out.In) {
		a.terminal = out.In.(*os.File)
	} else if cli.IsTerminal(out.Err.Raw) {
		a.terminal, _ = os.Open("/dev/tty") // nil if the process has none
	}
	if a.terminal != nil {
		a.lines = bufio.NewReader(a.terminal)
	}
	return a
}

func (a *asking) line(question string) (string, error) {
	if a.lines == nil {
		return "", cli.Usage("there is no terminal to ask on: use --user and --password-stdin, " +
			"or FERRY_USER and FERRY_PASSWORD")
	}
	a.out.Tell("%s", question)
	text, err := cli.Await(a.ctx, func() (string, error) { return a.lines.ReadString('\n') })
	if a.ctx.Err() != nil {
		return "", err
	}
	if err != nil && (err != io.EOF || text == "") {
		return "", cli.Usage("there was no answer")
	}
	if a.terminal == nil {
		a.out.Tell("\n")
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
	a.out.Tell("%s", question)
	text, err := cli.Await(a.ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	a.out.Tell("\n")
	if a.ctx.Err() != nil {
		_ = term.Restore(fd, before) // or it would keep hiding what is typed
		return "", err
	}
	return string(text), fault.Wrap(err, "reading an answer")
}

// twice asks for a new password two times, and checks that both are the same.
func (a *asking) twice(question string) (string, error) {
	password, err := a.secret(question)
	if err != nil {
		return "", err
	}
	again, err := a.secret("Again: ")
	if err == nil && again != password {
		err = cli.Usage("the two passwords differ; nothing was changed")
	}
	return password, err
}

// password returns the password in the environment, or else asks for it.
func (a *asking) password(question string) (string, error) {
	if password := os.Getenv("FERRY_PASSWORD"); password != "" {
		return password, nil
	}
	return a.secret(question)
}
