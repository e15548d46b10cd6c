package param

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/links"
	"ferry/shared/service"
	"ferry/shared/wire"
)

// MaxDownloads is the highest limit of a link. MaxLinkPassword is the longest password of a link,
// in characters.
const MaxDownloads, MaxLinkPassword = 1_000_000, 128

// Delivery reads the options in a query, which has no secrets.
func Delivery(q url.Values) (d wire.Delivery, err error) {
	for _, o := range d.Options() {
		if q.Has(o.Name) && err == nil {
			err = read(q[o.Name], o)
		}
	}
	return d, err
}

// read reads the values that a query has for an option.
func read(values []string, o wire.Option) error {
	text := values[0]
	switch field := o.Field.(type) {
	case *string:
		*field = text
	case *wire.Texts:
		*field = values
	case *bool:
		*field = text == "1"
		if text != "" && text != "0" && text != "1" {
			return fault.Parameter(o.Name, "the query parameter %s must be 1 or 0", o.Name)
		}
	case *int64:
		var err error
		*field, err = strconv.ParseInt(text, 10, 64)
		if err != nil || *field < 1 || *field > MaxDownloads {
			return fault.Parameter(
				o.Name, "the query parameter %s must be a number from 1 to %d", o.Name, MaxDownloads,
			)
		}
	}
	return nil
}

// Options checks the limits of a link, and hashes its password. When the link ends is left to Until,
// or to Expiry.
func Options(
	ctx context.Context,
	s *service.Service,
	l wire.Limits,
) (o files.Options, err error) {
	switch {
	case l.Downloads < 0 || l.Downloads > MaxDownloads:
		return o, fault.Parameter(
			"downloads",
			"the parameter downloads must be a number from 1 to %d",
			MaxDownloads,
		)
	case utf8.RuneCountInString(l.Password) > MaxLinkPassword:
		return o, fault.Parameter(
			"password",
			"the password of a link must have at most %d characters",
			MaxLinkPassword,
		)
	case strings.ContainsRune(l.Password, utf8.RuneError): // something has replaced the sender's characters
		return o, fault.Parameter("password", "the password of a link must be UTF-8")
	case strings.TrimSpace(l.Password) != l.Password ||
		strings.ContainsFunc(l.Password, unicode.IsControl):
		// The header that carries the password in a download allows neither.
		return o, fault.Parameter(
			"password", "the password of a link must have no control characters, and no spaces at its ends",
		)
	}
	o.Limit = l.Downloads
	if l.Password != "" {
		o.Password, err = s.Hasher.Hash(ctx, l.Password)
	}
	return o, err
}

// Expiry reads when a file leaves the user area. An empty text leaves that to the retention.
func Expiry(text string, now time.Time) (e files.Expiry, err error) {
	at, err := When("expires", text, now)
	if err != nil || at == 0 {
		return e, err
	}
	if !strings.Contains(text, "-") { // it counts from when the file is stored
		return files.Expiry{In: at - now.Unix()}, nil
	}
	return files.Expiry{At: at}, nil
}

// Until reads when a link to a file expires, in Unix seconds; 0 means together with the file.
func Until(text string, now time.Time, f files.File) (int64, error) {
	at, err := When("expires", text, now)
	switch {
	case err != nil:
		return 0, err
	case f.Expires != 0 && at > f.Expires:
		return 0, fault.Parameter(
			"expires",
			"the parameter expires is later than the file's own expiry, %s",
			Time(f.Expires).Format("2006-01-02T15:04:05Z"),
		)
	}
	return at, nil
}

// Change reads what changes about a link to a file.
func Change(
	ctx context.Context,
	s *service.Service,
	in wire.ChangeLink,
	f files.File,
) (c links.Change, err error) {
	if in.Expires != nil {
		until, err := Until(*in.Expires, s.Now(), f)
		c.Until = &until
		if err != nil {
			return c, err
		}
	}
	o, err := Options(ctx, s, wire.Limits{
		Downloads: Value(in.Downloads),
		Password:  Value(in.Password),
	})
	c.Limit = in.Downloads
	if in.Password != nil {
		c.Password = &o.Password
	}
	return c, err
}

// PasswordHeader is the header with the password of a link. A download also accepts the password in
// Basic authentication, with any user name.
const PasswordHeader = "Ferry-Link-Password"

// Password returns the password that a request gives for a link: in that header or in Basic
// authentication.
func Password(r *http.Request) string {
	return cmp.Or(HeaderPassword(r), identity.Read(r).Password)
}

// HeaderPassword returns the password in that header.
func HeaderPassword(r *http.Request) string {
	return identity.HeaderText(r.Header.Get(PasswordHeader))
}

// CheckPassword checks the password that a request gives for a link against its hash. id names the
// link, and curl shows how to give the password. The answer tells a client to ask for it.
func CheckPassword(
	w http.ResponseWriter, r *http.Request, passwords *identity.Passwords, id, hash, curl string,
) error {
	err := error(fault.New(fault.Unauthorized, "this link needs a password: %s", curl))
	if given := Password(r); given != "" {
		err = passwords.CheckOther(r.Context(), id, hash, given, identity.Source(r))
	}
	if fault.Is(err, fault.Unauthorized) {
		w.Header().Set("WWW-Authenticate", `Basic realm="link", charset="UTF-8"`)
	}
	return err
}
