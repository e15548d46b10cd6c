package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"ferry/infra/ferry/cli"
	"ferry/shared/blob/disk"
	"ferry/shared/client"
)

// saved is a saved login of this device. It does not hold the password.
type saved struct {
	URL    string `json:"url"`
	User   string `json:"user"`
	Bearer string `json:"bearer"`
}

// loginFile is where the login is saved.
func loginFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", cli.Fail(cli.ExitSettings, "there is no folder for settings: %w", err)
	}
	return filepath.Join(dir, "ferry", "login.json"), nil
}

// readLogin reads the saved login. It is empty if none is saved, or if there is no place for one.
// If others can read the file, readLogin makes it private.
func readLogin(out cli.Console) (s saved, err error) {
	path, err := loginFile()
	if err != nil {
		return s, nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = closeToOthers(out, path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, err
	case json.Unmarshal(text, &s) != nil:
		return saved{}, cli.Fail(cli.ExitSettings, "%s is damaged: run ferry login", path)
	}
	return s, nil
}

func closeToOthers(out cli.Console, path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	out.Tell("ferry: warning: others could read %s, which holds your login; now they cannot. "+
		"Run ferry logout if somebody may have done so.\n", path)
	return os.Chmod(path, 0o600)
}

// writeLogin saves a login so that only its owner can read it.
func writeLogin(s saved) error {
	path, err := loginFile()
	if err != nil {
		return err
	}
	return writePrivate(path, s)
}

// writePrivate writes v in JSON to a file that only its owner can read. The file is
// replaced atomically: it is never half written.
func writePrivate(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	return disk.WritePrivate(path, bytes.NewReader(text), os.Rename)
}

type Login struct {
	remote
	Server        string `arg:"" optional:"" name:"url"`
	PasswordStdin bool   `help:"Read the password from standard input, one line."`
}

func (c Login) Run(ctx context.Context, out cli.Console) error {
	before, err := readLogin(out)
	if err != nil && cli.ExitCode(err) != cli.ExitSettings {
		return err
	}
	c.URL = cmp.Or(c.Server, c.URL, before.URL)
	cl, err := c.open(nil)
	if err != nil {
		return err
	}
	warnPlain(out, cl.URL())
	user, password, err := c.credentials(ctx, out)
	if err != nil {
		return err
	}
	if err := logIn(ctx, cl, user, password); err != nil {
		return err
	}
	if before.Bearer != "" && before.URL == cl.URL() && strings.EqualFold(before.User, user) {
		_ = cl.Logout(ctx, before.Bearer) // nobody knows it any more; if this fails, it expires
	}
	out.Tell("logged in to %s as %s\n", cl.URL(), user)
	return nil
}

// logIn logs this device in and saves its token.
func logIn(ctx context.Context, cl *client.Client, user, password string) error {
	bearer, err := cl.LoginDevice(ctx, user, password, device())
	switch {
	case errors.Is(err, client.ErrNotFound):
		return cli.Fail(
			cli.ExitSettings,
			"%s is not the address of a Ferry service: %w",
			cl.URL(),
			err,
		)
	case err != nil:
		return err
	}
	if err := writeLogin(saved{URL: cl.URL(), User: user, Bearer: bearer}); err != nil {
		return fmt.Errorf(
			"saving the login: %w; without one, set FERRY_URL, FERRY_USER and FERRY_PASSWORD "+
				"for each command",
			err,
		)
	}
	return nil
}

// device returns the name under which this device is listed.
func device() string {
	name, _ := os.Hostname() // empty if it is not known
	return cmp.Or(name, "a device")
}

// credentials returns the user and password in the flags and the environment, and asks for what is missing.
func (c Login) credentials(
	ctx context.Context,
	out cli.Console,
) (user, password string, err error) {
	ask := asker(ctx, out)
	user = c.User
	if user == "" {
		if c.PasswordStdin {
			return "", "", cli.Usage("say who you are with --user or FERRY_USER")
		}
		if user, err = ask.line("user: "); err != nil {
			return "", "", err
		}
	}
	if c.PasswordStdin {
		password, err = cli.ReadLine(ctx, out.In)
	} else {
		password, err = ask.password(fmt.Sprintf("password of %s: ", user))
	}
	if err == nil && password == "" {
		err = cli.Usage("the password is empty")
	}
	return user, password, err
}

// warnPlain warns before a password crosses a network that others can read. It shows only the host
// of an address, because the rest may give access to a file.
func warnPlain(out cli.Console, address string) {
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "http" && !cli.Loopback(u) {
		out.Tell(
			"ferry: warning: http://%s is not encrypted; anyone on the network path can read the password\n",
			u.Host,
		)
	}
}

type Logout struct{}

func (Logout) Run(ctx context.Context, out cli.Console) error {
	s, err := readLogin(out)
	if err != nil && cli.ExitCode(err) != cli.ExitSettings {
		return err
	}
	path, err := loginFile()
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.Bearer == "" {
		out.Tell("nobody was logged in\n")
		return nil
	}
	cl, err := client.New(client.Options{URL: s.URL, Retry: client.Retry{Tries: 1}})
	if err == nil {
		err = cl.Logout(ctx, s.Bearer)
	}
	if err != nil {
		return fmt.Errorf("the login is removed here, but the service could not be told: "+
			"end it with ferry token rm on another device: %w", err)
	}
	out.Tell("logged out of %s\n", s.URL)
	return nil
}

type Passwd struct {
	remote
	First bool `help:"Use a temporary password, from FERRY_PASSWORD or typed in, instead of a PIN by mail."`
}

func (c Passwd) Run(ctx context.Context, out cli.Console, who *identity) error {
	if who.user == "" {
		return cli.Usage("say whose password with --user or FERRY_USER")
	}
	warnPlain(out, who.URL())
	ask := asker(ctx, out)
	if ask.lines == nil {
		ask.lines = bufio.NewReader(io.LimitReader(out.In, 64<<10))
	}
	link, pin, err := c.permission(ctx, ask, who)
	if err != nil {
		return err
	}
	password, err := ask.twice("new password: ")
	if err != nil {
		return err
	}
	if err := who.Change(ctx, link, pin, password); err != nil {
		return err
	}
	out.Tell("the password of %s is changed; all earlier logins have ended\n", who.user)
	return logIn(ctx, who.Client, who.user, password)
}

// permission gets the link that changes the password, and the PIN for it.
func (c Passwd) permission(
	ctx context.Context,
	ask *asking,
	who *identity,
) (link, pin string, err error) {
	if !c.First {
		if link, err = who.Forgot(ctx, who.user); err != nil {
			return "", "", err
		}
		ask.out.Tell("A PIN is on its way to the mail address of %s.\n", who.user)
		pin, err = ask.line("PIN: ")
		return link, pin, err
	}
	password, err := ask.password("temporary password: ")
	if err != nil {
		return "", "", err
	}
	link, err = who.First(ctx, who.user, password)
	return link, "", err
}
