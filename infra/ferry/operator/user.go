package operator

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"ferry/infra/ferry/cli"
	"ferry/shared/boot/local"
	"ferry/shared/boot/stores"
	"ferry/shared/contact"
	"ferry/shared/fault"
	"ferry/shared/notify/texts"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/users"
)

type User struct {
	Add     userAdd     `cmd:"" help:"Create a user."`
	List    userList    `cmd:"" help:"List all users."`
	Show    userShow    `cmd:"" help:"Show one user."`
	Invite  userInvite  `cmd:"" help:"Send a user in first access a new invitation."`
	Edit    userEdit    `cmd:"" help:"Change a user's address, number, language, quota or retention."`
	Disable userDisable `cmd:"" help:"End a user's access at once; the files stay."`
	Enable  userEnable  `cmd:"" help:"Give a disabled user access again."`
	Reset   userReset   `cmd:"" help:"Give a user a new temporary password, and end all of the user's bearers."`
	Remove  userRemove  `cmd:"" help:"Remove a user and all of the user's files for good."`
}

func canonical(name string) (string, error) {
	if c, ok := users.CanonicalName(name); ok {
		return c, nil
	}
	quoted := fmt.Sprintf("%q", name)
	if utf8.RuneCountInString(name) > users.MaxName { // enough to recognise it
		quoted = fmt.Sprintf("%.*q...", users.MaxName/2, name)
	}
	return "", cli.Usage(
		"%s cannot be a user's name: a name has 1 to %d of the letters a to z, digits and . _ - @ +, "+
			"and does not begin with a dot",
		quoted,
		users.MaxName,
	)
}

// passwordFlags has the flags of commands that set a password.
type passwordFlags struct {
	PasswordStdin bool
	Active        bool `help:"The password is the user's own: skip first access."`
}

func (f passwordFlags) state() users.State {
	if f.Active {
		return users.Active
	}
	return users.FirstAccess
}

// password returns the password to set: a new one, or the one on standard input.
func (f passwordFlags) password(
	ctx context.Context,
	out cli.Console,
	user string,
) (string, error) {
	if !f.PasswordStdin {
		return TemporaryPassword(), nil
	}
	password, err := cli.ReadLine(ctx, out.In)
	if err != nil {
		return "", err
	}
	return password, cli.WithCode(cli.ExitUsage, users.CheckPassword(password, user))
}

// report prints what was done, and the password if it is a new one.
func (f passwordFlags) report(out cli.Console, done, user, password string) {
	out.Tell("user %s %s\n", user, done)
	if !f.PasswordStdin {
		kind := "temporary password"
		if f.Active {
			kind = "password"
		}
		out.Print("%s: %s\n", kind, password)
	}
	if !f.Active {
		out.Tell(
			"%s is in first access: with this password, ferry passwd --first or POST /auth/first "+
				"lets the user choose another.\n",
			user,
		)
	}
}

type userAdd struct {
	Store
	passwordFlags
	profile
	inviting
	NoInvite  bool   `help:"Send no invitation to the address."`
	WithFiles bool   `help:"Keep the files of a user whose record is lost or cannot be read; logins end."`
	Name      string `arg:"" help:"Name to log in with."`
}

// profile has the flags of commands that say who a user is and what the user may do.
type profile struct {
	Email       string `placeholder:"ADDRESS" help:"Address for the PIN of a forgotten password."`
	Phone       string `placeholder:"NUMBER" help:"Mobile number."`
	PhoneRegion string `env:"FERRY_PHONE_REGION" placeholder:"IT" help:"Region of a number without a country code."`
	Lang        string `placeholder:"LANG" help:"Language of links and mails: ${languages}."`
	Quota       string `placeholder:"SIZE"`
	KeepDays    string `placeholder:"DAYS" help:"Days that files stay in the user area (default the service's)."`
	BackupDays  string `placeholder:"DAYS" help:"Days that files stay in the backup area (default the service's)."`
}

func (c userAdd) Run(ctx context.Context, set service.Settings, out cli.Console) error {
	name, err := canonical(c.Name)
	if err != nil {
		return err
	}
	u := users.User{Name: name, State: c.state()}
	if err := c.apply(&u, c.InCloud()); err != nil {
		return err
	}
	password, err := c.password(ctx, out, u.Name)
	if err != nil {
		return err
	}
	invites := u.Email != "" && !c.NoInvite && u.State == users.FirstAccess
	if err := c.canInvite(c.Store, set); invites && err != nil {
		return fmt.Errorf("%w; or add --no-invite", err)
	}
	var ports []stores.Need
	if c.WithFiles {
		ports = FilePorts()
	} else if invites {
		ports = []stores.Need{stores.Key}
	}
	// The first user may be added before the service first starts.
	return c.Open(ctx, service.Settings{}, local.Options{}, func(p *service.Service) error {
		if err := AddUser(ctx, p, u, password, c.WithFiles); err != nil {
			return err
		}
		c.report(out, "was created", u.Name, password)
		if !invites {
			return nil
		}
		made, err := p.Users().Get(ctx, u.Name)
		if err == nil {
			err = c.invite(ctx, out, p, made, set.PublicURL, c.InCloud())
		}
		return fault.Wrap(err, "the user exists, but no invitation was sent")
	}, ports...)
}

// inviting has the flags of commands that send invitations.
type inviting struct {
	PublicURL string `env:"FERRY_PUBLIC_URL" output:"BaseUrl" placeholder:"URL"`
}

// canInvite returns an error if the link in an invitation cannot be made.
func (inviting) canInvite(s Store, set service.Settings) error {
	if s.InCloud() && (set.PublicURL == "" || s.KeyParameter == "") {
		return cli.Usage("the link in the invitation needs --public-url and --key-parameter, or --stack")
	}
	return nil
}

// invite mails a user the link to choosing a password. Without a public URL, the service that sends
// the mail fills in its own.
func (inviting) invite(
	ctx context.Context,
	out cli.Console,
	p *service.Service,
	u users.User,
	base string,
	inCloud bool,
) error {
	if err := p.Users().Invite(ctx, u, base); err != nil {
		return err
	}
	when := ""
	if !inCloud {
		when = " as soon as ferry serve runs"
	}
	out.Tell("an invitation goes to %s%s; its link for choosing a password is valid for %s\n",
		u.Email, when, cli.Count(int64(users.InviteLife/(24*time.Hour)), "day"))
	return nil
}

type userInvite struct {
	ofOne
	inviting
}

func (c userInvite) Run(ctx context.Context, set service.Settings, out cli.Console) error {
	if err := c.canInvite(c.Store, set); err != nil {
		return err
	}
	return c.on(ctx, out, func(p *service.Service, u users.User) (string, error) {
		switch {
		case u.State == "":
			return "", fmt.Errorf("%w: ferry user show %s says more", users.ErrDamaged, u.Name)
		case u.State != users.FirstAccess:
			return "", cli.Usage(
				"user %s is in state %s: only users in first access can be invited; "+
					"ferry user reset starts that",
				u.Name,
				u.State,
			)
		case u.Email == "":
			return "", cli.Usage(
				"user %s has no address: ferry user edit %s --email ADDRESS",
				u.Name,
				u.Name,
			)
		}
		return "", c.invite(ctx, out, p, u, set.PublicURL, c.InCloud())
	}, stores.Key)
}

// apply sets what the flags say.
func (p profile) apply(u *users.User, inCloud bool) error {
	return errors.Join(
		given(&u.Email, "--email", p.Email, func(text string) (string, error) {
			text, err := contact.ParseAddress(text)
			if err == nil && inCloud {
				err = contact.CheckLocal(text)
			}
			return text, err
		}),
		given(&u.Phone, "--phone", p.Phone, func(text string) (string, error) {
			return contact.ParseMobile(text, p.PhoneRegion)
		}),
		given(&u.Lang, "--lang", p.Lang, parseLang),
		given(&u.Quota, "--quota", p.Quota, service.ParseSize),
		given(&u.KeepDays, "--keep-days", p.KeepDays, parseDays),
		given(&u.BackupDays, "--backup-days", p.BackupDays, parseDays))
}

// given parses a flag that has a value; "none" stands for the zero value.
func given[T any](to *T, flag, text string, parse func(string) (T, error)) error {
	if text == "" {
		return nil
	}
	var value T
	if text != "none" {
		var err error
		if value, err = parse(text); err != nil {
			return cli.Usage("%s %s is %w", flag, text, err)
		}
	}
	*to = value
	return nil
}

func parseLang(text string) (string, error) {
	if l, ok := texts.Find(text); ok {
		return l.Lang, nil
	}
	return "", fmt.Errorf("not one of %s", strings.Join(texts.Tags(), ", "))
}

func parseDays(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, errors.New("not a number of days")
	}
	return int64(n), nil
}

type userEdit struct {
	ofOne
	profile
}

func (c userEdit) Run(ctx context.Context, out cli.Console) error {
	if c.profile == (profile{PhoneRegion: c.PhoneRegion}) {
		return cli.Usage("say what to change, such as --quota 5GB")
	}
	return c.on(ctx, out, func(p *service.Service, u users.User) (string, error) {
		after := u
		err := c.apply(&after, c.InCloud())
		if err == nil && u.Quota == 0 && after.Quota > 0 {
			after.Used, err = p.Files().Used(ctx, u)
		}
		if err != nil {
			return "", err
		}
		done := "is changed"
		if u.State == users.FirstAccess && u.Email != "" && u.Email != after.Email {
			done += "; an invitation to the old address no longer works: ferry user invite sends another"
		}
		return done, p.Users().Edit(ctx, u, after)
	})
}

type userList struct {
	Store
	JSON bool `name:"json" help:"Print a JSON array."`
}

func (c userList) Run(ctx context.Context, out cli.Console) error {
	return c.use(ctx, func(p *service.Service) error {
		all, failed := []account{}, cli.Failures{Out: out}
		service := p.Files()
		err := p.Users().Names(ctx, "", func(u users.User, bad error) error {
			if bad != nil {
				u.State = "damaged" // ferry user show says more
			} else if c.JSON {
				u.Used, bad = service.Used(ctx, u) // as it is now
				failed.Add(u.Name, bad)
			}
			all = append(all, show(u))
			return nil
		})
		if err != nil || c.JSON {
			return cli.Report(out, err == nil, all, cmp.Or(err, failed.First))
		}
		w := tabwriter.NewWriter(out.Out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tSTATE\tE-MAIL\tPHONE\tLANG\tCREATED")
		for _, a := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
				a.Name, a.State, a.Email, a.Phone, a.Lang, a.Created.Format(time.DateOnly))
		}
		return w.Flush()
	})
}

// account is what an operator sees about a user.
type account struct {
	Name       string      `json:"name"`
	State      users.State `json:"state"`
	Email      string      `json:"email"`
	Phone      string      `json:"phone"`
	Lang       string      `json:"lang"`
	Quota      int64       `json:"quota"`
	Used       int64       `json:"used"` // in both areas, with what uploads have reserved
	KeepDays   int64       `json:"keepDays"`
	BackupDays int64       `json:"backupDays"`
	LastFile   int64       `json:"lastFile"`
	Created    time.Time   `json:"created"`
}

func show(u users.User) account {
	return account{
		u.Name, u.State, u.Email, u.Phone, u.Lang, u.Quota, u.Used,
		u.KeepDays, u.BackupDays, u.LastFile, time.Unix(u.Created, 0).UTC(),
	}
}

// ofOne is a command on one user.
type ofOne struct {
	Store
	Name string `arg:"" help:"The user's name."`
}

// on runs f on the user and prints what f did. Its errors name the user. If there are ports for
// files, f is also called for a user whose record is lost or unreadable, as files.Remains finds it.
func (c ofOne) on(
	ctx context.Context, out cli.Console, f func(*service.Service, users.User) (done string, err error),
	ports ...stores.Need,
) error {
	name, err := canonical(c.Name)
	if err != nil {
		return err
	}
	return c.use(ctx, func(p *service.Service) error {
		u, err := p.Files().Remains(ctx, name)
		if err != nil && !(errors.Is(err, users.ErrDamaged) && len(ports) > 0) {
			return err
		}
		done, err := f(p, u)
		if err == nil && done != "" {
			out.Tell("user %s %s\n", name, done)
		}
		return err
	}, ports...)
}

type userShow struct {
	ofOne
	JSON bool `name:"json" help:"Print a JSON object."`
}

func (c userShow) Run(ctx context.Context, out cli.Console) error {
	return c.on(ctx, out, func(p *service.Service, u users.User) (string, error) {
		used, err := p.Files().Used(ctx, u)
		if err != nil {
			return "", err
		}
		u.Used = used
		a := show(u)
		if c.JSON {
			return "", cli.PrintJSON(out, a)
		}
		w := tabwriter.NewWriter(out.Out, 0, 4, 2, ' ', 0)
		fmt.Fprintf(w, "name\t%s\nstate\t%s\ne-mail\t%s\nphone\t%s\nlanguage\t%s\n",
			a.Name, a.State, a.Email, a.Phone, a.Lang)
		if a.Quota > 0 {
			fmt.Fprintf(w, "quota\t%s of %s used\n", cli.Size(a.Used), cli.Size(a.Quota))
		} else {
			fmt.Fprintf(w, "used\t%s, without a quota\n", cli.Size(a.Used))
		}
		if a.KeepDays > 0 {
			fmt.Fprintf(w, "keeps files for\t%s\n", cli.Count(a.KeepDays, "day"))
		}
		if a.BackupDays > 0 {
			fmt.Fprintf(w, "keeps backups for\t%s\n", cli.Count(a.BackupDays, "day"))
		}
		fmt.Fprintf(w, "last file id\t%d\ncreated\t%s\n",
			a.LastFile, a.Created.Format(time.DateTime))
		return "", w.Flush()
	})
}

type userDisable struct{ ofOne }

func (c userDisable) Run(ctx context.Context, out cli.Console) error {
	return c.on(ctx, out, func(p *service.Service, u users.User) (string, error) {
		return "is disabled; all bearers have ended", p.Users().Disable(ctx, u.Name)
	})
}

type userEnable struct{ ofOne }

func (c userEnable) Run(ctx context.Context, out cli.Console) error {
	return c.on(ctx, out, func(p *service.Service, u users.User) (string, error) {
		if u.State != users.Disabled {
			return "is not disabled", nil
		}
		state, err := p.Users().Enable(ctx, u.Name)
		return fmt.Sprintf("is enabled, in state %s", state), err
	})
}

type userReset struct {
	ofOne
	passwordFlags
}

func (c userReset) Run(ctx context.Context, out cli.Console) error {
	return c.on(ctx, out, func(p *service.Service, u users.User) (string, error) {
		if u.State == users.Disabled {
			return "", cli.Usage("user %s is disabled; enable it first", u.Name)
		}
		password, err := c.password(ctx, out, u.Name)
		if err != nil {
			return "", err
		}
		hash, err := p.Hasher.Hash(ctx, password)
		if err != nil {
			return "", err
		}
		if err := p.Users().SetPassword(ctx, u.Name, hash, c.state()); err != nil {
			return "", err
		}
		done := "has a new password; all bearers have ended"
		if u.State == users.FirstAccess {
			done += ", and an invitation that was sent no longer works: ferry user invite sends another"
		}
		c.report(out, done, u.Name, password)
		return "", nil
	})
}

type userRemove struct {
	ofOne
	Yes bool `short:"y" help:"Do not ask."`
}

func (c userRemove) Run(ctx context.Context, out cli.Console) error {
	return c.on(ctx, out, func(p *service.Service, u users.User) (string, error) {
		if !c.Yes {
			err := confirm(ctx, out, u.Name)
			if err != nil {
				return "", err
			}
		}
		// The user is disabled first, so that no file arrives during the removal.
		err := p.Users().Disable(ctx, u.Name)
		if errors.Is(err, users.ErrUnknown) || errors.Is(err, table.ErrUnreadable) {
			u.State, u.Before = users.Disabled, users.FirstAccess
			err = p.Users().AddAgain(ctx, u, err)
		}
		if err != nil {
			return "", err
		}
		removed, err := p.Files().RemoveAll(ctx, u.Name)
		if err != nil {
			return "", fmt.Errorf("after %s: %w", cli.Count(removed, "removed file"), err)
		}
		return fmt.Sprintf("and %s were removed",
			cli.Count(removed, "file")), p.Users().Remove(ctx, u.Name)
	}, FilePorts()...)
}

// confirm asks for the user's name.
func confirm(ctx context.Context, out cli.Console, name string) error {
	out.Tell(
		"This removes %s and all of the user's files for good. Type the name to continue: ",
		name,
	)
	line, err := cli.ReadLine(ctx, out.In)
	if !cli.IsTerminal(out.In) || err != nil {
		out.Tell("\n") // the answer has not ended the question's line
	}
	if err == nil && strings.TrimSpace(line) != name {
		err = cli.Usage("nothing was removed; type the name, or use --yes")
	}
	return err
}

// AddUser adds a new user or, with withFiles, one whose record is lost or unreadable.
func AddUser(
	ctx context.Context,
	p *service.Service,
	u users.User,
	password string,
	withFiles bool,
) (err error) {
	if u.Password, err = p.Hasher.Hash(ctx, password); err != nil {
		return err
	}
	accounts, service := p.Users(), p.Files()
	last, bad := service.Remains(ctx, u.Name)
	switch {
	case withFiles && errors.Is(bad, users.ErrDamaged):
		u.LastFile = last.LastFile
		u.Generation = last.Generation
		u.Incarnation = last.Incarnation
		if u.Used, err = service.Used(ctx, u); err != nil && u.Quota > 0 {
			return err
		}
		return accounts.AddAgain(ctx, u, bad)
	case bad != nil && (withFiles || !errors.Is(bad, users.ErrUnknown)):
		return bad
	}
	return accounts.Add(ctx, u)
}

// TemporaryPassword has 80 random bits, in letters and the digits 2 to 7, so that
// no digit can be mistaken for a letter.
func TemporaryPassword() string { return strings.ToLower(rand.Text()[:16]) }
