package client

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"unicode"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

// wrongPasswords is how many wrong passwords for a link a user may type.
const wrongPasswords = 3

// givenPassword returns the password of a link from one line of a file (- is standard input), or
// from the environment. It is never a flag's value, because other users of the machine can see those.
func givenPassword(
	ctx context.Context,
	out cli.Console,
	file string,
) (password string, err error) {
	path := cmp.Or(file, os.Getenv("FERRY_LINK_PASSWORD_FILE"))
	switch password = os.Getenv("FERRY_LINK_PASSWORD"); {
	case file == "-":
		password, err = cli.ReadLine(ctx, out.In)
	case file != "" || password == "" && path != "":
		var f *os.File
		if f, err = os.Open(path); err != nil {
			return "", noInput(err)
		}
		defer f.Close()
		password, err = cli.ReadLine(ctx, f)
	}
	if err == nil && file != "" && password == "" {
		err = cli.Usage("the password in %s is empty", file)
	}
	return password, err
}

// unlocking finds the passwords of links to download.
type unlocking struct {
	ctx   context.Context // of the command
	out   cli.Console
	meter *cli.Meter
	given string // in a file or the environment
	typed string
	wrong int
}

// password returns a password; wrong is the error of the previous one, or nil.
func (u *unlocking) password(wrong error) (string, error) {
	if known := cmp.Or(u.given, u.typed); wrong == nil && known != "" {
		return known, nil // needed again, because a claim has ended
	}
	if wrong != nil {
		u.wrong++
	}
	ask := asker(u.ctx, u.out)
	switch {
	case wrong != nil && (u.given != "" || u.wrong == wrongPasswords):
		return "", wrong
	case ask.terminal == nil:
		return "", fmt.Errorf(
			"%w: name a file that has it with --password-file, or set FERRY_LINK_PASSWORD",
			client.ErrPassword,
		)
	}
	u.meter.Lock()
	defer u.meter.Unlock()
	u.meter.Clear()
	question := "Password of the link: "
	if wrong != nil {
		question = "Wrong password. " + question
	}
	var err error
	u.typed, err = ask.secret(question)
	return u.typed, err
}

// protecting has the flags of commands that protect links with a password.
type protecting struct {
	Password     bool
	PasswordFile string `placeholder:"PATH" help:"Protect each link with the password in this file; - is standard input."`
}

// linkPassword returns the password, or "" if none is wanted.
func (p protecting) linkPassword(
	ctx context.Context,
	out cli.Console,
) (password string, err error) {
	if !p.Password && p.PasswordFile == "" {
		return "", nil
	}
	if password, err = givenPassword(ctx, out, p.PasswordFile); err == nil && password == "" {
		password, err = newLinkPassword(asker(ctx, out))
	}
	if err == nil &&
		(strings.TrimSpace(password) != password ||
			strings.ContainsFunc(password, unicode.IsControl)) {
		err = cli.Usage("the password of a link cannot begin or end with a space, or have control characters")
	}
	return password, err
}

// changed returns the password to set: "" if it is to be removed, or nil if it stays.
func (p protecting) changed(
	ctx context.Context,
	out cli.Console,
	remove bool,
) (*string, error) {
	if remove && (p.Password || p.PasswordFile != "") {
		return nil, cli.Usage("--password and --no-password can't be used together")
	}
	password, err := p.linkPassword(ctx, out)
	if err != nil || password == "" && !remove {
		return nil, err
	}
	return &password, nil
}

func newLinkPassword(ask *asking) (string, error) {
	if ask.terminal == nil {
		return "", cli.Usage("there is no terminal to ask for the password on: use --password-file or FERRY_LINK_PASSWORD")
	}
	password, err := ask.twice("Password for the link: ")
	if err == nil && password == "" {
		err = cli.Usage("the password is empty")
	}
	return password, err
}
