// Command invoke deploys the stack to the emulator of AWS that infra/awslocal starts,
// with the data that events/ refer to, and sends an event to one of its functions. It
// prints the answer and compares it with the expected one:
//
//	go run ./infra/awslocal -- go run ./infra/invoke downloadlist
//	go run ./infra/awslocal -- go run ./infra/invoke feedback events/feedbacksms.json
//
// Without a function it prints the address of the stack and where to see the mail
// that it sends, and runs until Ctrl-C. Nothing imports this package; start reading with run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/aws/aws-lambda-go/events"

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
	f, err := event(args)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "building the functions ...")
	c, err := emulated.Open(ctx, ".", ".")
	if err != nil {
		return err
	}
	s, err := deploy(ctx, c, f)
	if err != nil {
		return err
	}
	defer s.Close()
	if f.Function == "" {
		fmt.Fprintf(out, "the stack answers at %s; alice has the password %q\n", s.Base, boottest.Password)
		fmt.Fprintf(out, "mail: %[1]s/_ministack/ses/messages, text messages: %[1]s/_ministack/sns/sms-messages\n", c.Address)
		<-ctx.Done()
		return nil
	}
	answer, err := s.Answer(ctx, f.Function, f.Event)
	if err != nil {
		return err
	}
	if err := show(out, answer); err != nil || f.Expect.Status == 0 && f.Expect.Body == "" {
		return err
	}
	if err := f.Expect.Check(answer); err != nil {
		return fmt.Errorf("the answer is not as expected: %w", err)
	}
	fmt.Fprintln(os.Stderr, "the answer is as expected")
	return nil
}

// event reads the event that the arguments name.
func event(args []string) (f boottest.Fixture, err error) {
	switch {
	case len(args) == 0:
		return f, nil
	case len(args) > 2:
		return f, errors.New("usage: go run ./infra/awslocal -- go run ./infra/invoke [FUNCTION [FILE]]")
	}
	if _, err := os.Stat(filepath.Join("functions", args[0], "main.go")); err != nil {
		return f, fmt.Errorf("there is no functions/%s here: run it in the root of the project", args[0])
	}
	path := filepath.Join("events", args[0]+".json")
	if len(args) == 2 {
		path = args[1]
	}
	f, err = boottest.Read(strings.TrimSuffix(filepath.Base(path), ".json"), path)
	f.Function = args[0]
	return f, err
}

// deploy deploys a stack with the data that the event refers to.
func deploy(ctx context.Context, c *emulated.Cloud, f boottest.Fixture) (*emulated.Stack, error) {
	const sender = "ferry@example.com"
	if err := c.Verify(ctx, sender); err != nil {
		return nil, err
	}
	parameters := map[string]string{"SenderAddress": sender, "SmsSending": "on"}
	if f.Function != "" {
		parameters["PublicUrl"] = "" // the links in events/ have the gateway's own address
	}
	s, err := c.Deploy(ctx, "invoke", parameters)
	if err != nil {
		return nil, err
	}
	p, err := s.Fill(ctx, slog.New(slog.DiscardHandler))
	if err == nil {
		err = f.Notices(ctx, p)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// show prints an answer, as a readable HTTP response if it is one for the gateway.
func show(out io.Writer, payload []byte) error {
	var r events.APIGatewayProxyResponse
	if err := json.Unmarshal(payload, &r); err != nil || r.StatusCode == 0 {
		_, err := fmt.Fprintf(out, "%s\n", payload)
		return err
	}
	fmt.Fprintf(out, "%d\n", r.StatusCode)
	for _, name := range slices.Sorted(maps.Keys(r.MultiValueHeaders)) {
		fmt.Fprintf(out, "%s: %s\n", name, strings.Join(r.MultiValueHeaders[name], ", "))
	}
	body, err := boottest.Body(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s\n", strings.TrimRight(string(body), "\n"))
	return err
}
