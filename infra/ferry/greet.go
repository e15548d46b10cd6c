package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"ferry/shared/auth"

	"ferry/shared/api"
	"ferry/shared/boot/local"
)

// greet tells where the service is and, on the first start on empty data,
// makes a user to try it with.
func (c serveCommand) greet(ctx context.Context, out console, p *api.Ports, o local.ServiceOptions) error {
	where := c.Data
	if c.inCloud() {
		where = "DynamoDB table " + c.Table
	}
	fmt.Fprintf(out.Out, "Ferry serves %s (data in %s). Ctrl-C stops it.\n", p.PublicURL, where)
	if o.ShowInbox {
		fmt.Fprintf(out.Out, "Mail and text messages are not sent: they are shown at %s/inbox\n", strings.TrimSuffix(p.PublicURL, api.Prefix))
	}
	if n := len(o.Webhooks); n > 0 && c.Secret == "" {
		fmt.Fprintf(out.Out, "Events are posted to %d webhooks, signed with the secret in %s\n", n, filepath.Join(c.Data, "webhook.secret"))
	}
	if !c.Demo || c.inCloud() {
		return nil
	}
	password, err := demoUser(ctx, p)
	if err != nil || password == "" {
		return err
	}
	fmt.Fprintf(out.Out, `
This is the first start: there is a user "demo" now, with the password %[1]s
(it is not shown again; %[3]s makes a new one). Try it in another terminal:

  echo "Hello, Ferry" > hello.txt
  curl -u demo:%[1]s -F file=@hello.txt %[2]s/upload
  curl -u demo:%[1]s %[2]s/download/list
  curl -OJ "LINK"          # a linkURL from one of the answers

or with this program, for files of any size:

  %[4]s login %[2]s --user demo
  %[4]s up hello.txt

`, password, p.PublicURL, c.command(out, "user", "reset", "demo"), quoted(out.Program))
	return nil
}

// command is how one who sees the greeting calls this program for these data.
func (c serveCommand) command(out console, args ...string) string {
	words := append([]string{out.Program}, args...)
	if usual, err := filepath.Abs(usualData); err != nil || c.Data != usual {
		words = append(words, "--data", c.Data)
	}
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plain are what a word for the shell may have without quotes.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-"

// demoUser makes the user and returns the password, "" if there are users
// already.
func demoUser(ctx context.Context, p *api.Ports) (string, error) {
	store := auth.NewUsers(p.Table, p.Now)
	errFound := errors.New("found")
	err := store.List(ctx, func(auth.User) error { return errFound })
	if errors.Is(err, errFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	password, err := temporaryPassword(rand.Reader)
	if err != nil {
		return "", err
	}
	hash, err := p.Hasher.Hash(ctx, password)
	if err != nil {
		return "", err
	}
	return password, store.Add(ctx, auth.User{
		Name: "demo", Email: "demo@example.com", Lang: "en", State: auth.Active, Password: hash,
	})
}

// temporaryPassword has 80 random bits in letters that are hard to mistake
// for one another.
func temporaryPassword(random io.Reader) (string, error) {
	const letters = "abcdefghjkmnpqrstuvwxyz23456789." // 32
	b := make([]byte, 16)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("making a password: %w", err)
	}
	for i := range b {
		b[i] = letters[:31][int(b[i])%31]
	}
	return string(b), nil
}
