package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

// checkGuest refuses flags that are not for guests, or do nothing without a request.
func (c Up) checkGuest() error {
	if c.Request == "" {
		if c.By != "" {
			return cli.Usage("--by goes with --request")
		}
		return nil
	}
	others := c.sharing
	others.PasswordFile = "" // this is the password of the request
	switch {
	case !strings.Contains(c.Request, "k="):
		return cli.Usage("--request takes the whole link of a request; quote it, or the shell cuts it off")
	case c.Password:
		return cli.Usage("--password does not go with --request: if the request needs a password, it is asked for")
	case c.To != "" || c.Notify || !reflect.DeepEqual(others, sharing{}):
		return cli.Usage("with --request you can add files, and nothing else: --to, --expires, --notify, --sms, --mail, " +
			"--message, --lang, --downloads and --qr do not go with it")
	}
	return nil
}

// join makes the caller a guest of a request, the same guest as in an earlier run.
func (u *uploader) join(ctx context.Context) error {
	given, err := givenPassword(ctx, u.out, u.PasswordFile)
	if err != nil {
		return err
	}
	keys := &unlocking{ctx: ctx, out: u.out, meter: u.meter, given: given}
	path, secret, unkept := readGuest(u.Request)
	cl, about, err := client.Join(ctx, u.Request, client.GuestOptions{
		Name:   u.By,
		Secret: secret,
		Retry:  u.retry,
		Password: func(wrong error) (string, error) {
			warnPlain(u.out, u.Request)
			return keys.password(wrong)
		},
	})
	if err != nil {
		return err
	}
	if unkept == nil {
		unkept = writePrivate(path, cl.GuestSecret()) // its date says that it is in use
	}
	if unkept != nil {
		u.meter.Say("large uploads cannot be resumed later: %s", cli.Explain(unkept))
	}
	u.client = &identity{Client: cl, user: path}
	to := about.Maker
	if about.Title != "" {
		to += ": " + about.Title
	}
	u.meter.Say("sending to %s", to)
	return nil
}

// readGuest returns the path of the file for the guest's secret of a request's link, and the
// secret, if there is one. Without it a guest could not resume an upload.
func readGuest(link string) (path, secret string, err error) {
	dir, err := stateFolder()
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256([]byte(link))
	path = filepath.Join(dir, hex.EncodeToString(sum[:16])+".guest")
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &secret) != nil || !inHeader(secret) {
		secret = "" // there is none, or it is unusable
	}
	return path, secret, nil
}
