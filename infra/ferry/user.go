package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/notify"

	"ferry/shared/api"
)

type userCommands struct {
	Add     userAdd     `cmd:"" help:"Create a user."`
	List    userList    `cmd:"" help:"List all users."`
	Show    userShow    `cmd:"" help:"Show one user."`
	Disable userDisable `cmd:"" help:"End a user's access at once; the files stay."`
	Enable  userEnable  `cmd:"" help:"Give a disabled user access again."`
	Reset   userReset   `cmd:"" help:"Give a user a new temporary password, and end all of the user's bearers."`
	Remove  userRemove  `cmd:"" help:"Remove a user and all of the user's files for good."`
}

// accounts opens what the commands on users need.
func (s store) accounts(ctx context.Context, o local.Options, ports ...lambda.Opener) (*api.Ports, *auth.Users, func() error, error) {
	p, done, err := s.open(ctx, api.Settings{}, o, append(ports, tablePort())...)
	if err != nil {
		return nil, nil, nil, err
	}
	return p, auth.NewUsers(p.Table, p.Now), done, nil
}

func canonical(name string) (string, error) {
	c, ok := auth.CanonicalName(name)
	if !ok {
		return "", &coded{exitUsage, fmt.Errorf("%s cannot be a user's name: it has 1 to %d of the letters a to z, digits and . _ - @ +, and does not begin with a dot", quote(name), auth.MaxName)}
	}
	return c, nil
}

// quote shows enough of a text to recognise it by.
func quote(text string) string {
	if r := []rune(text); len(r) > auth.MaxName {
		return fmt.Sprintf("%q...", string(r[:auth.MaxName/2]))
	}
	return fmt.Sprintf("%q", text)
}

// passwordFlags are those of commands that set a password.
type passwordFlags struct {
	PasswordStdin bool `help:"Read the password from standard input, one line. Without this a temporary one is made and printed."`
	Active        bool `help:"The password is the user's own: skip the first-access step."`
}

func (f passwordFlags) state() auth.UserState {
	if f.Active {
		return auth.Active
	}
	return auth.FirstAccess
}

// password returns the password to set, and whether it must be shown.
func (f passwordFlags) password(user string, in io.Reader) (password string, show bool, err error) {
	if !f.PasswordStdin {
		password, err = temporaryPassword(rand.Reader)
		return password, true, err
	}
	line, err := bufio.NewReader(io.LimitReader(in, 4096)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", false, fmt.Errorf("reading the password: %w", err)
	}
	password = strings.TrimRight(line, "\r\n")
	if err := auth.CheckPassword(password, user); err != nil {
		return "", false, &coded{exitUsage, err}
	}
	return password, false, nil
}

func (f passwordFlags) report(out console, user, password string, show bool) {
	if show {
		kind := "temporary password"
		if f.Active {
			kind = "password"
		}
		fmt.Fprintf(out.Out, "%s: %s\n", kind, password)
	}
	if !f.Active {
		fmt.Fprintf(out.Err, "%s is in first access: ferry passwd --first, or POST /auth/first, with this password leads to one of the user's own.\n", user)
	}
}

type userAdd struct {
	store
	passwordFlags
	Name        string `arg:"" help:"Name to log in with."`
	Email       string `placeholder:"ADDRESS" help:"Where the PIN of a forgotten password goes."`
	Phone       string `placeholder:"NUMBER" help:"Mobile number."`
	PhoneRegion string `env:"FERRY_PHONE_REGION" placeholder:"IT" help:"Region of a number without country code."`
	Lang        string `placeholder:"LANG" help:"Language of links and mails: en, it, es, fr or de."`
	Quota       int64  `placeholder:"BYTES" help:"Most bytes in the user's two areas; 0 is no bound."`
	KeepDays    int64  `placeholder:"DAYS" help:"Days that files stay in the user area, instead of the service's."`
	BackupDays  int64  `placeholder:"DAYS" help:"Days that files stay in the backup area, instead of the service's."`
}

func (c userAdd) Run(ctx context.Context, out console) (err error) {
	u, err := c.user()
	if err != nil {
		return err
	}
	password, show, err := c.password(u.Name, out.In)
	if err != nil {
		return err
	}
	p, store, done, err := c.accounts(ctx, local.Options{}) // the first user may come before the first start
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if u.Password, err = p.Hasher.Hash(ctx, password); err != nil {
		return err
	}
	if err := store.Add(ctx, u); err != nil {
		return err
	}
	fmt.Fprintf(out.Err, "user %s was created\n", u.Name)
	c.report(out, u.Name, password, show)
	return nil
}

// user checks the flags.
func (c userAdd) user() (auth.User, error) {
	name, err := canonical(c.Name)
	if err != nil {
		return auth.User{}, err
	}
	u := auth.User{
		Name: name, Email: c.Email, Lang: strings.ToLower(c.Lang), State: c.state(),
		Quota: c.Quota, KeepDays: c.KeepDays, BackupDays: c.BackupDays,
	}
	if c.Email != "" {
		if err := notify.CheckAddress(c.Email); err != nil {
			return u, &coded{exitUsage, fmt.Errorf("--email is %w", err)}
		}
	}
	if c.Phone != "" {
		if u.Phone, err = notify.ParseMobile(c.Phone, c.PhoneRegion); err != nil {
			return u, &coded{exitUsage, fmt.Errorf("--phone is %w", err)}
		}
	}
	if u.Lang != "" && !slices.Contains(api.Languages(), u.Lang) {
		return u, &coded{exitUsage, fmt.Errorf("--lang is one of %s", strings.Join(api.Languages(), ", "))}
	}
	if c.Quota < 0 || c.KeepDays < 0 || c.BackupDays < 0 {
		return u, &coded{exitUsage, errors.New("--quota, --keep-days and --backup-days are not negative")}
	}
	return u, nil
}

type userList struct {
	store
	JSON bool `name:"json" help:"Print a JSON array."`
}

func (c userList) Run(ctx context.Context, out console) (err error) {
	_, store, done, err := c.accounts(ctx, local.Options{Existing: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	all := []account{}
	err = store.List(ctx, func(u auth.User) error {
		all = append(all, show(u))
		return nil
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out, all)
	}
	w := tabwriter.NewWriter(out.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tE-MAIL\tPHONE\tLANG\tCREATED")
	for _, a := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", a.Name, a.State, a.Email, a.Phone, a.Lang, a.Created.Format(time.DateOnly))
	}
	return w.Flush()
}

// account is what an operator sees of a user.
type account struct {
	Name       string         `json:"name"`
	State      auth.UserState `json:"state"`
	Email      string         `json:"email"`
	Phone      string         `json:"phone"`
	Lang       string         `json:"lang"`
	Quota      int64          `json:"quota"`
	Used       int64          `json:"used"` // kept for users with a quota
	KeepDays   int64          `json:"keepDays"`
	BackupDays int64          `json:"backupDays"`
	LastFile   int64          `json:"lastFile"`
	Created    time.Time      `json:"created"`
}

func show(u auth.User) account {
	return account{
		Name: u.Name, State: u.State, Email: u.Email, Phone: u.Phone, Lang: u.Lang, Quota: u.Quota, Used: u.Used,
		KeepDays: u.KeepDays, BackupDays: u.BackupDays, LastFile: u.LastFile, Created: time.Unix(u.Created, 0).UTC(),
	}
}

func printJSON(out console, v any) error {
	enc := json.NewEncoder(out.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// named is a command on one user.
type named struct {
	store
	Name string `arg:"" help:"The user's name."`
}

// on runs f on the user, with its errors naming the user.
func (c named) on(ctx context.Context, f func(*api.Ports, *auth.Users, auth.User) error, ports ...lambda.Opener) (err error) {
	name, err := canonical(c.Name)
	if err != nil {
		return err
	}
	p, store, done, err := c.accounts(ctx, local.Options{Existing: true}, ports...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	u, err := store.Get(ctx, name)
	if err == nil {
		err = f(p, store, u)
	}
	if errors.Is(err, auth.ErrUnknownUser) {
		return fmt.Errorf("%w: %s", err, name)
	}
	return err
}

type userShow struct {
	named
	JSON bool `name:"json" help:"Print a JSON object."`
}

func (c userShow) Run(ctx context.Context, out console) error {
	return c.on(ctx, func(_ *api.Ports, _ *auth.Users, u auth.User) error {
		a := show(u)
		if c.JSON {
			return printJSON(out, a)
		}
		w := tabwriter.NewWriter(out.Out, 0, 4, 2, ' ', 0)
		fmt.Fprintf(w, "name\t%s\nstate\t%s\ne-mail\t%s\nphone\t%s\nlanguage\t%s\n", a.Name, a.State, a.Email, a.Phone, a.Lang)
		if a.Quota > 0 {
			fmt.Fprintf(w, "quota\t%d of %d bytes used\n", a.Used, a.Quota)
		}
		if a.KeepDays > 0 {
			fmt.Fprintf(w, "keeps files for\t%d days\n", a.KeepDays)
		}
		if a.BackupDays > 0 {
			fmt.Fprintf(w, "keeps backups for\t%d days\n", a.BackupDays)
		}
		fmt.Fprintf(w, "last file id\t%d\ncreated\t%s\n", a.LastFile, a.Created.Format(time.DateTime))
		return w.Flush()
	})
}

type userDisable struct{ named }

func (c userDisable) Run(ctx context.Context, out console) error {
	return c.on(ctx, func(_ *api.Ports, s *auth.Users, u auth.User) error {
		if err := s.Disable(ctx, u.Name); err != nil {
			return err
		}
		fmt.Fprintf(out.Err, "user %s is disabled; all bearers have ended\n", u.Name)
		return nil
	})
}

type userEnable struct{ named }

func (c userEnable) Run(ctx context.Context, out console) error {
	return c.on(ctx, func(_ *api.Ports, s *auth.Users, u auth.User) error {
		if u.State != auth.Disabled {
			fmt.Fprintf(out.Err, "user %s is not disabled\n", u.Name)
			return nil
		}
		state, err := s.Enable(ctx, u.Name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out.Err, "user %s is enabled, in state %s\n", u.Name, state)
		return nil
	})
}

type userReset struct {
	named
	passwordFlags
}

func (c userReset) Run(ctx context.Context, out console) error {
	return c.on(ctx, func(p *api.Ports, s *auth.Users, u auth.User) error {
		if u.State == auth.Disabled {
			return &coded{exitUsage, fmt.Errorf("user %s is disabled; enable it first", u.Name)}
		}
		password, show, err := c.password(u.Name, out.In)
		if err != nil {
			return err
		}
		hash, err := p.Hasher.Hash(ctx, password)
		if err != nil {
			return err
		}
		if err := s.SetPassword(ctx, u.Name, hash, c.state()); err != nil {
			return err
		}
		fmt.Fprintf(out.Err, "user %s has a new password; all bearers have ended\n", u.Name)
		c.report(out, u.Name, password, show)
		return nil
	})
}

type userRemove struct {
	named
	Yes bool `short:"y" help:"Do not ask."`
}

func (c userRemove) Run(ctx context.Context, out console) error {
	return c.on(ctx, func(p *api.Ports, s *auth.Users, u auth.User) error {
		if !c.Yes && !confirmed(out, u.Name) {
			return &coded{exitUsage, errors.New("nothing was removed; type the name, or use --yes")}
		}
		// Disabled first, so that no file comes in behind the removal.
		if err := s.Disable(ctx, u.Name); err != nil {
			return err
		}
		removed, err := file.Service(p).RemoveAll(ctx, u.Name)
		if err != nil {
			return fmt.Errorf("%d files were removed, then: %w", removed, err)
		}
		if err := s.Remove(ctx, u.Name); err != nil {
			return err
		}
		fmt.Fprintf(out.Err, "user %s and %d files were removed\n", u.Name, removed)
		return nil
	}, lambda.Blobs(s3.Open), lambda.LinkKey)
}

func confirmed(out console, name string) bool {
	fmt.Fprintf(out.Err, "This removes %s and all of the user's files for good. Type the name to go on: ", name)
	line, _ := bufio.NewReader(io.LimitReader(out.In, 1024)).ReadString('\n')
	if !echoes(out.In) || !strings.HasSuffix(line, "\n") {
		fmt.Fprintln(out.Err) // nobody's return key ended the line of the question
	}
	return strings.TrimSpace(line) == name
}

// echoes reports whether what is read was typed, and so is to be seen.
func echoes(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
