// Command ferry runs Ferry on one machine, operates it there or in the cloud, and
// is the client for people. See ferry --help.
//
// It imports the client, and for the service's commands what they run on. Start
// reading at commands.go; each file holds a few commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks to end; a second one ends at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], console{Program: os.Args[0], In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// console is where a command reads and prints.
type console struct {
	Program string // as it was called
	In      io.Reader
	Out     io.Writer // what was asked for
	Err     io.Writer // everything else
}

// run does what the arguments say and returns the exit code.
func run(ctx context.Context, args []string, c console) int {
	var cli commands
	exit := -1
	parser, err := kong.New(&cli,
		kong.Name("ferry"),
		kong.Description("A file-transfer service: upload with one HTTP call, the recipient gets the link."),
		kong.Writers(c.Out, c.Err),
		kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(c),
		kong.UsageOnError(),
		kong.Vars{"usual_data": usualData},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	if err != nil {
		fmt.Fprintln(c.Err, "ferry:", err)
		return exitOther
	}
	command, err := parser.Parse(args)
	if exit >= 0 { // --help was answered
		return exit
	}
	if err != nil {
		fmt.Fprintf(c.Err, "ferry: %v\nTry ferry --help.\n", err)
		return exitUsage
	}
	if err := command.Run(parser); err != nil {
		if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
			err = errInterrupted
		}
		fmt.Fprintln(c.Err, "ferry:", explain(err))
		return exitCode(err)
	}
	return exitOK
}
