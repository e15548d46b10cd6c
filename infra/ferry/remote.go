package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"ferry/shared/client"
	"ferry/shared/fault"
)

// remote says which service a command talks to, and as whom.
type remote struct {
	URL  string `env:"FERRY_URL" placeholder:"URL" help:"Address of the service (default from the saved login)."`
	User string `env:"FERRY_USER" placeholder:"NAME"`

	retry client.Retry
}

// fewTries is how often a command tries if the user is waiting for it.
const fewTries = 3

// tellAgain is the shortest time between two reports of a failure.
const tellAgain = 5 * time.Second

// transfer has the flags of commands that take a while.
type transfer struct {
	Connections int  `default:"4" placeholder:"N" help:"Pieces, or small files, to transfer at once (default ${default})."`
	Tries       int  `default:"10" placeholder:"N"`
	JSON        bool `name:"json" help:"Print a JSON array of what was done and what failed."`
	Quiet       bool `short:"q" help:"Show no progress."`
}

// meter checks the flags and returns a meter. It makes r retry as often as the flags
// say, and report retries beside the meter.
func (t transfer) meter(out console, r *remote) (*meter, error) {
	if t.Connections < 1 || t.Connections > 64 || t.Tries < 1 {
		return nil, usage("--connections %d, --tries %d: connections must be 1 to 64, tries at least 1", t.Connections, t.Tries)
	}
	m := newMeter(out, t.Quiet)
	var mu sync.Mutex
	var told time.Time // several connections fail for the same reason
	r.retry = client.Retry{Tries: t.Tries, Told: func(err error, wait time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if wait >= time.Second && time.Since(told) >= tellAgain {
			told = time.Now()
			m.say("%s; trying again", explain(err))
		}
	}}
	return m, nil
}

// open makes a client. Without a bearer it can only log in, change passwords and
// download by links.
func (r remote) open(bearer client.BearerFunc) (*client.Client, error) {
	if r.URL == "" {
		return nil, fail(exitSettings, "which service? Run ferry login URL first, or set --url or FERRY_URL")
	}
	r.retry.Tries = cmp.Or(r.retry.Tries, fewTries)
	c, err := client.New(client.Options{URL: r.URL, Bearer: bearer, Retry: r.retry})
	return c, withCode(exitSettings, err)
}

// AfterApply gives an identity to those Run methods that take one.
func (r *remote) AfterApply(k *kong.Context) error { return k.BindToProvider(r.identify) }

// identify returns a client that logs in when it has to.
func (r *remote) identify(out console) (*identity, error) {
	s, err := readLogin(out)
	if err != nil {
		return nil, err
	}
	i := &identity{out: out, mu: &sync.Mutex{}}
	r.URL = cmp.Or(r.URL, s.URL)
	if i.Client, err = r.open(i.bearer); err != nil {
		return nil, err
	}
	if base := i.URL(); s.URL != base || r.User != "" && r.User != s.User {
		s = saved{URL: base} // a bearer goes only to its own service
	}
	i.saved, i.user = s, cmp.Or(r.User, s.User)
	return i, nil
}

// identity is a client that finds its bearers: the saved one, then one for the
// password in the environment, then one for a password that it asks for.
type identity struct {
	*client.Client
	saved saved
	user  string
	out   console

	mu *sync.Mutex // held while it asks for a password: the meter's, if there is one
}

func (i *identity) bearer(ctx context.Context, refused string) (string, error) {
	byPassword := os.Getenv("FERRY_PASSWORD") != "" && i.user != ""
	if i.saved.Bearer != "" && refused == "" && !byPassword {
		return i.saved.Bearer, nil
	}
	if i.user == "" {
		return "", fmt.Errorf("%w to %s: run ferry login, or set FERRY_USER and FERRY_PASSWORD",
			client.ErrNoLogin, i.saved.URL)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	ask, asked := asker(ctx, i.out), os.Getenv("FERRY_PASSWORD") == ""
	if asked && ask.terminal == nil {
		return "", fmt.Errorf("%w: the login to %s has expired; run ferry login, or set FERRY_USER and FERRY_PASSWORD",
			client.ErrNoLogin, i.saved.URL)
	}
	password, err := ask.password(fmt.Sprintf("The login has expired. Password of %s: ", i.user))
	if err != nil {
		return "", err
	}
	if !asked {
		return i.Login(ctx, i.user, password)
	}
	bearer, err := i.LoginDevice(ctx, i.user, password, device())
	if err != nil {
		return "", err
	}
	i.saved.User, i.saved.Bearer = i.user, bearer
	if err := writeLogin(i.saved); err != nil {
		i.out.tell("ferry: warning: the login was not saved: %s\n", explain(err))
	}
	return bearer, nil
}

// asking puts questions to a person on a terminal. Without one, a command may let
// it take the answers from standard input, a line each.
type asking struct {
	ctx      context.Context // of the command that asks
	out      console
	terminal *os.File      // nil if there is none
	lines    *bufio.Reader // of the answers; nil if nobody can answer
}

// asker uses the terminal on standard input. If standard input is something else
// but a person sees standard error, it uses the terminal of the process.
func asker(ctx context.Context, out console) *asking {
	a := &asking{ctx: ctx, out: out}
	if isTerminal(out.In) {
		a.terminal = out.In.(*os.File)
	} else if isTerminal(out.Err.raw) {
		a.terminal, _ = os.Open("/dev/tty") // nil if the process has none
	}
	if a.terminal != nil {
		a.lines = bufio.NewReader(a.terminal)
	}
	return a
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (a *asking) line(question string) (string, error) {
	if a.lines == nil {
		return "", usage("there is no terminal to ask on: use --user and --password-stdin, or FERRY_USER and FERRY_PASSWORD")
	}
	a.out.tell("%s", question)
	text, err := await(a.ctx, func() (string, error) { return a.lines.ReadString('\n') })
	if a.ctx.Err() != nil {
		return "", err
	}
	if err != nil && (err != io.EOF || text == "") {
		return "", usage("there was no answer")
	}
	if a.terminal == nil {
		a.out.tell("\n")
	}
	return strings.TrimRight(text, "\r\n"), nil
}

// secret is line for an answer that the terminal must not show.
func (a *asking) secret(question string) (string, error) {
	if a.terminal == nil {
		return a.line(question)
	}
	fd := int(a.terminal.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("asking on the terminal: %w", err)
	}
	a.out.tell("%s", question)
	text, err := await(a.ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	a.out.tell("\n")
	if a.ctx.Err() != nil {
		_ = term.Restore(fd, before) // or it would keep hiding what is typed
		return "", err
	}
	return string(text), fault.Wrap(err, "reading an answer")
}

// twice asks for a new password two times, and checks that both are the same.
func (a *asking) twice(question string) (string, error) {
	password, err := a.secret(question)
	if err != nil {
		return "", err
	}
	again, err := a.secret("Again: ")
	if err == nil && again != password {
		err = usage("the two passwords differ; nothing was changed")
	}
	return password, err
}

// password returns the password in the environment, or else asks for it.
func (a *asking) password(question string) (string, error) {
	if password := os.Getenv("FERRY_PASSWORD"); password != "" {
		return password, nil
	}
	return a.secret(question)
}

// readLine reads a password, which is one line.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(interruptible{ctx, in}, 4096)).ReadString('\n')
	return strings.TrimRight(line, "\r\n"), fault.Wrap(err, "reading the password", io.EOF)
}

// await runs f, or returns the context's error as soon as the context ends: a read
// from a terminal or a pipe cannot be stopped, and lasts until the process ends.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	var value T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		value, err = f()
	}()
	select {
	case <-ctx.Done():
		return *new(T), ctx.Err()
	case <-done:
		return value, err
	}
}
