package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"ferry/shared/client"
)

// saved is the login that the credential store holds. The password is not in it.
type saved struct {
	URL    string `json:"url"`
	User   string `json:"user"`
	Bearer string `json:"bearer"`
}

// loginFile is where the login is kept.
func loginFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", &coded{exitSettings, fmt.Errorf("there is no folder for settings: %w", err)}
	}
	return filepath.Join(dir, "ferry", "login.json"), nil
}

// readLogin returns an empty login if none is saved, or there is no place where
// it could be. A file that others may read is closed to them.
func readLogin(out console) (saved, error) {
	path, err := loginFile()
	if err != nil {
		return saved{}, nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = closeToOthers(out, path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return saved{}, nil
	}
	if err != nil {
		return saved{}, err
	}
	var s saved
	if json.Unmarshal(text, &s) != nil {
		return saved{}, &coded{exitSettings, fmt.Errorf("%s is damaged: run ferry login", path)}
	}
	return s, nil
}

func closeToOthers(out console, path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	fmt.Fprintf(out.Err, "ferry: warning: others could read %s, which holds your login; now they cannot. Run ferry logout if somebody may have.\n", path)
	return os.Chmod(path, 0o600)
}

// writeLogin saves a login for its owner alone.
func writeLogin(s saved) error {
	path, err := loginFile()
	if err != nil {
		return err
	}
	return writePrivate(path, s)
}

// writePrivate replaces a file by v in JSON, readable by its owner alone; at no
// moment is it half there.
func writePrivate(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".new-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

type loginCommand struct {
	remote
	Server        string `arg:"" optional:"" name:"url" help:"The service's address, such as https://files.example.com; instead of --url."`
	PasswordStdin bool   `help:"Read the password from standard input, one line."`
}

func (loginCommand) Help() string {
	return `Keeps a bearer, which is good for an hour, and the service's address in the folder for settings, readable by you alone. The password is not kept:
a later command asks for it on a terminal, or takes FERRY_USER and FERRY_PASSWORD, when the bearer has run out. Who has a temporary password runs ferry passwd --first instead.`
}

func (c loginCommand) Run(ctx context.Context, out console) error {
	before, err := readLogin(out)
	if err != nil && exitCode(err) != exitSettings {
		return err
	}
	c.URL = cmp.Or(c.Server, c.URL, before.URL)
	cl, err := c.nobody()
	if err != nil {
		return err
	}
	warnPlain(out, cl.URL())
	user := c.User
	if user == "" && c.PasswordStdin {
		return &coded{exitUsage, errors.New("say who you are with --user or FERRY_USER")}
	}
	ask := asker(ctx, out)
	if user == "" {
		if user, err = ask.line("user: "); err != nil {
			return err
		}
	}
	password := os.Getenv("FERRY_PASSWORD")
	if c.PasswordStdin {
		password, err = readLine(ctx, out.In)
	} else if password == "" {
		password, err = ask.secret(fmt.Sprintf("password of %s: ", user))
	}
	if err != nil {
		return err
	}
	if password == "" {
		return &coded{exitUsage, errors.New("the password is empty")}
	}
	bearer, err := cl.Login(ctx, user, password)
	if errors.Is(err, client.ErrNotFound) {
		return &coded{exitSettings, fmt.Errorf("%s is not the address of a Ferry service: %w", cl.URL(), err)}
	}
	if err != nil {
		return refusedLogin(err)
	}
	if err := writeLogin(saved{URL: cl.URL(), User: user, Bearer: bearer}); err != nil {
		return fmt.Errorf("keeping the login: %w; without one, FERRY_URL, FERRY_USER and FERRY_PASSWORD do for each command", err)
	}
	fmt.Fprintf(out.Err, "logged in to %s as %s\n", cl.URL(), user)
	return nil
}

// refusedLogin says what to do after a login that failed.
func refusedLogin(err error) error {
	var e *client.Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		return fmt.Errorf("%w; try again in %s", err, e.RetryAfter)
	}
	return err
}

// warnPlain warns before a password crosses a network that others can read.
func warnPlain(out console, base string) {
	u, err := url.Parse(base)
	if err == nil && u.Scheme == "http" && u.Hostname() != "localhost" && !isLoopback(u.Hostname()) {
		fmt.Fprintf(out.Err, "ferry: warning: %s is not encrypted; who listens on the way gets the password\n", base)
	}
}

type logoutCommand struct{}

func (logoutCommand) Run(ctx context.Context, out console) error {
	s, err := readLogin(out)
	if err != nil && exitCode(err) != exitSettings {
		return err
	}
	path, err := loginFile()
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.Bearer == "" {
		fmt.Fprintln(out.Err, "nobody was logged in")
		return nil
	}
	cl, err := client.New(client.Options{URL: s.URL, Retry: client.Retry{Tries: 1}})
	if err == nil {
		err = cl.Logout(ctx, s.Bearer)
	}
	if err != nil {
		return fmt.Errorf("the login is forgotten here, and ends within the hour; the service was not told: %w", err)
	}
	fmt.Fprintf(out.Err, "logged out of %s\n", s.URL)
	return nil
}
