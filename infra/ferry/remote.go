package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"ferry/shared/client"
)

// remote says which service a command talks to, and as whom.
type remote struct {
	URL  string `env:"FERRY_URL" placeholder:"URL" help:"Address of the service; without it that of the saved login."`
	User string `env:"FERRY_USER" placeholder:"NAME" help:"User to log in as, with the password of FERRY_PASSWORD; without it that of the saved login."`

	retry client.Retry
}

// fewTries is how often a command that a person waits for tries.
const fewTries = 3

// tellAgain is how long after a reported failure others are not reported.
const tellAgain = 5 * time.Second

// transfer are flags of commands that last.
type transfer struct {
	Connections int  `default:"4" placeholder:"N" help:"Pieces, or small files, at once (default ${default})."`
	Tries       int  `default:"10" placeholder:"N" help:"How often to try without any progress before giving up (default ${default})."`
	JSON        bool `name:"json" help:"Print a JSON array of what was done and what failed."`
	Quiet       bool `short:"q" help:"Show no progress."`
}

// meter checks the flags and returns a meter. r retries as often as the flags
// say, and reports that beside the meter.
func (t transfer) meter(out console, r *remote) (*meter, error) {
	if t.Connections < 1 || t.Connections > 64 || t.Tries < 1 {
		return nil, usage("--connections is 1 to 64, and --tries at least 1")
	}
	m := newMeter(out, t.Quiet)
	var mu sync.Mutex
	var told time.Time // several connections fail for the same reason
	r.retry = client.Retry{Tries: t.Tries, Told: func(err error, wait time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if wait >= time.Second && time.Since(told) >= tellAgain {
			told = time.Now()
			m.say("%s; trying again", err)
		}
	}}
	return m, nil
}

// open makes a client; without a bearer it can only log in, change passwords and
// download by links.
func (r remote) open(bearer client.BearerFunc) (*client.Client, error) {
	if r.URL == "" {
		return nil, &coded{exitSettings, errors.New("which service? Run ferry login URL first, or say it with --url or FERRY_URL")}
	}
	r.retry.Tries = cmp.Or(r.retry.Tries, fewTries)
	c, err := client.New(client.Options{URL: r.URL, Bearer: bearer, Retry: r.retry})
	if err != nil {
		return nil, &coded{exitSettings, err}
	}
	return c, nil
}

// client is a client that logs in when it has to.
func (r remote) client(out console) (*client.Client, *identity, error) {
	s, err := readLogin(out)
	if err != nil {
		return nil, nil, err
	}
	r.URL = cmp.Or(r.URL, s.URL)
	i := &identity{password: os.Getenv("FERRY_PASSWORD"), out: out}
	if i.client, err = r.open(i.bearer); err != nil {
		return nil, nil, err
	}
	if base := i.client.URL(); s.URL != base || r.User != "" && r.User != s.User {
		s = saved{URL: base} // a bearer goes only to its own service
	}
	i.saved, i.user = s, cmp.Or(r.User, s.User)
	return i.client, i, nil
}

// identity finds bearers: the saved one, then one by the environment's
// password, then one by a password that is asked for.
type identity struct {
	client   *client.Client
	saved    saved
	user     string
	password string
	out      console

	mu sync.Mutex // held while a password is asked for, so that no progress is shown
}

func (i *identity) bearer(ctx context.Context, refused string) (string, error) {
	if i.saved.Bearer != "" && refused == "" {
		return i.saved.Bearer, nil
	}
	if i.user == "" {
		return "", fmt.Errorf("%w to %s: run ferry login, or set FERRY_USER and FERRY_PASSWORD", client.ErrNoLogin, i.saved.URL)
	}
	if i.password != "" {
		bearer, err := i.client.Login(ctx, i.user, i.password)
		return bearer, refusedLogin(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	ask := asker(ctx, i.out)
	if ask.terminal == nil {
		return "", fmt.Errorf("%w: the login to %s has run out; run ferry login, or set FERRY_USER and FERRY_PASSWORD", client.ErrNoLogin, i.saved.URL)
	}
	password, err := ask.secret(fmt.Sprintf("The login has run out. Password of %s: ", i.user))
	if err != nil {
		return "", err
	}
	bearer, err := i.client.Login(ctx, i.user, password)
	if err != nil {
		return "", refusedLogin(err)
	}
	i.saved.User, i.saved.Bearer = i.user, bearer
	if err := writeLogin(i.saved); err != nil {
		fmt.Fprintln(i.out.Err, "ferry: warning: the login is not kept:", explain(err))
	}
	return bearer, nil
}
