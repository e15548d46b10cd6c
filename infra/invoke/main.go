// Command invoke runs the functions on this machine, on the stand-ins for AWS that infra/awslocal
// starts, with the data that events/ refer to. It runs them as a whole stack, which is deployed to
// an emulator, or in Docker by SAM.
//
//	go run ./infra/awslocal -- go run ./infra/invoke
//	go run ./infra/awslocal -- go run ./infra/invoke sam local start-api
//	go run ./infra/awslocal -- go run ./infra/invoke sam local invoke Health -e events/health.json
//
// The first form prints the address of the stack and where to see the mail that it
// sends, and runs until Ctrl-C. The others run SAM, after `sam build` for this
// machine's processor (`make sam-local` does both). Nothing imports this package;
// start reading with run.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"ferry/infra/stack/emulated"
	"ferry/shared/boot/boottest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "invoke:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	switch {
	case len(args) > 1 && args[0] == "sam":
		return runSAM(ctx, out, args[1:])
	case len(args) > 0:
		return errors.New("usage: go run ./infra/awslocal -- go run ./infra/invoke [sam ARGUMENTS]")
	}
	fmt.Fprintln(os.Stderr, "building the functions ...")
	c, err := emulated.Open(ctx, ".", ".")
	if err != nil {
		return err
	}
	if err := c.Verify(ctx, sender); err != nil {
		return err
	}
	s, err := c.Deploy(ctx, "invoke", map[string]string{
		"SenderAddress": sender,
		"SmsSending":    "on",
	})
	if err != nil {
		return err
	}
	if _, err := emulated.Fill(ctx, c.Config, s.Deployed, slog.New(slog.DiscardHandler)); err != nil {
		return errors.Join(err, s.Close())
	}
	fmt.Fprintf(out, "the stack answers at %s; alice has the password %q\n",
		s.Base, boottest.Password)
	fmt.Fprintf(
		out, "mail: %[1]s/_ministack/ses/messages, text messages: %[1]s/_ministack/sns/sms-messages\n", c.Address,
	)
	<-ctx.Done()
	return s.Close()
}
