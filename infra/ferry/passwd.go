package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"ferry/shared/client"
)

type passwdCommand struct {
	remote
	First bool `help:"You have a temporary password, of FERRY_PASSWORD or asked for; no mail is sent."`
}

func (passwdCommand) Help() string {
	return `Sends a PIN to the user's mail address, asks for it and for a new password, and logs in with that.
Without a terminal the answers are lines on standard input: the temporary password with --first or else the PIN, then the new password twice.`
}

func (c passwdCommand) Run(ctx context.Context, out console) error {
	s, err := readLogin(out)
	if err != nil {
		return err
	}
	c.URL = cmp.Or(c.URL, s.URL)
	user := cmp.Or(c.User, s.User)
	cl, err := c.nobody()
	if err != nil {
		return err
	}
	if user == "" {
		return &coded{exitUsage, errors.New("say whose password with --user or FERRY_USER")}
	}
	warnPlain(out, cl.URL())
	ask := asker(ctx, out).fromStdin()
	link, pin, err := c.permission(ctx, out, cl, ask, user)
	if err != nil {
		return refusedLogin(err)
	}
	password, err := newPassword(ask)
	if err != nil {
		return err
	}
	if err := cl.Change(ctx, link, pin, password); err != nil {
		return refusedLogin(err)
	}
	fmt.Fprintf(out.Err, "the password of %s is changed; all logins of before have ended\n", user)
	bearer, err := cl.Login(ctx, user, password)
	if err != nil {
		return refusedLogin(err)
	}
	return writeLogin(saved{URL: cl.URL(), User: user, Bearer: bearer})
}

// permission gets the link that changes the password, and the PIN for it.
func (c passwdCommand) permission(ctx context.Context, out console, cl *client.Client, ask *asking, user string) (link, pin string, err error) {
	if !c.First {
		if link, err = cl.Forgot(ctx, user); err != nil {
			return "", "", err
		}
		fmt.Fprintf(out.Err, "A PIN is on its way to the mail address of %s.\n", user)
		pin, err = ask.line("PIN: ")
		return link, pin, err
	}
	password := os.Getenv("FERRY_PASSWORD")
	if password == "" {
		if password, err = ask.secret("temporary password: "); err != nil {
			return "", "", err
		}
	}
	link, err = cl.First(ctx, user, password)
	return link, "", err
}

func newPassword(ask *asking) (string, error) {
	password, err := ask.secret("new password: ")
	if err != nil {
		return "", err
	}
	again, err := ask.secret("again: ")
	if err != nil {
		return "", err
	}
	if again != password {
		return "", &coded{exitUsage, errors.New("the two are not the same; nothing was changed")}
	}
	return password, nil
}
