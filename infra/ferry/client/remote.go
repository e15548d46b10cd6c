// Package client has the commands for people who send and get files. They use only HTTP. Start reading at remote,
// which says which service a command talks to.
package client

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
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
func (t transfer) meter(out cli.Console, r *remote) (*cli.Meter, error) {
	if t.Connections < 1 || t.Connections > 64 || t.Tries < 1 {
		return nil, cli.Usage(
			"--connections %d, --tries %d: connections must be 1 to 64, tries at least 1",
			t.Connections,
			t.Tries,
		)
	}
	m := cli.NewMeter(out, t.Quiet)
	var mu sync.Mutex
	var told time.Time // several connections fail for the same reason
	r.retry = client.Retry{Tries: t.Tries, Told: func(err error, wait time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if wait >= time.Second && time.Since(told) >= tellAgain {
			told = time.Now()
			m.Say("%s; trying again", cli.Explain(err))
		}
	}}
	return m, nil
}

// pausing adds how to resume a transfer that Ctrl-C or the network has interrupted, if that is
// possible: a pipe cannot be resumed.
func pausing(ctx context.Context, err error, pipe bool) error {
	interrupted := err != nil && ctx.Err() != nil
	if interrupted {
		err = cli.ErrInterrupted
	}
	if !pipe && (interrupted || client.IsNetwork(err)) {
		err = fmt.Errorf("%w; run the same command again to resume", err)
	}
	return err
}

// open makes a client. Without a bearer it can only log in, change passwords and
// download by links.
func (r remote) open(bearer client.BearerFunc) (*client.Client, error) {
	if r.URL == "" {
		return nil, cli.Fail(
			cli.ExitSettings,
			"which service? Run ferry login URL first, or set --url or FERRY_URL",
		)
	}
	r.retry.Tries = cmp.Or(r.retry.Tries, fewTries)
	c, err := client.New(client.Options{URL: r.URL, Bearer: bearer, Retry: r.retry})
	return c, cli.WithCode(cli.ExitSettings, err)
}

// AfterApply gives an identity to those Run methods that take one.
func (r *remote) AfterApply(k *kong.Context) error { return k.BindToProvider(r.identify) }

// identify returns a client that logs in when it has to.
func (r *remote) identify(out cli.Console) (*identity, error) {
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
	out   cli.Console

	mu sync.Locker // held while it asks for a password: the meter, if there is one
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
		return "", fmt.Errorf(
			"%w: the login to %s has expired; run ferry login, or set FERRY_USER and FERRY_PASSWORD",
			client.ErrNoLogin,
			i.saved.URL,
		)
	}
	password, err := ask.password(fmt.Sprintf("The login has expired. Password of %s: ",
		i.user))
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
		i.out.Tell("ferry: warning: the login was not saved: %s\n", cli.Explain(err))
	}
	return bearer, nil
}
