package param

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ferry/shared/auth"
	"ferry/shared/fault"
	"ferry/shared/files"
)

// MaxDownloads is the highest limit of a link. MaxLinkPassword is the longest password of a link,
// in characters.
const MaxDownloads, MaxLinkPassword = 1_000_000, 128

// Options checks a limit and a password, and hashes the password.
func Options(ctx context.Context, hasher *auth.Hasher, downloads int64, password string) (o files.Options, err error) {
	switch {
	case downloads < 0 || downloads > MaxDownloads:
		return o, fault.Parameter("downloads", "the parameter downloads must be a number from 1 to %d", MaxDownloads)
	case utf8.RuneCountInString(password) > MaxLinkPassword:
		return o, fault.Parameter("password", "the password of a link must have at most %d characters", MaxLinkPassword)
	case strings.ContainsRune(password, utf8.RuneError): // something has replaced the sender's characters
		return o, fault.Parameter("password", "the password of a link must be UTF-8")
	case strings.TrimSpace(password) != password || strings.ContainsFunc(password, unicode.IsControl):
		// The header that carries the password in a download allows neither.
		return o, fault.Parameter("password", "the password of a link must have no control characters, and no spaces at its ends")
	}
	o.Limit = downloads
	if password != "" {
		o.Password, err = hasher.Hash(ctx, password)
	}
	return o, err
}

// Expiry reads when a file leaves the user area. An empty text leaves that to the retention.
func Expiry(text string, now time.Time) (e files.Expiry, err error) {
	at, err := Expires(text, now)
	if err != nil || at == 0 {
		return e, err
	}
	if !strings.Contains(text, "-") { // it counts from when the file is stored
		return files.Expiry{In: at - now.Unix()}, nil
	}
	return files.Expiry{At: at}, nil
}

// PasswordHeader is the header with the password of a link. A download also accepts the password in
// Basic authentication, with any user name.
const PasswordHeader = "Ferry-Link-Password"

// Password returns the password that a request gives for a link: in that header or in Basic
// authentication.
func Password(r *http.Request) string {
	return cmp.Or(HeaderPassword(r), auth.Read(r).Password)
}

// HeaderPassword returns the password in that header.
func HeaderPassword(r *http.Request) string { return auth.HeaderText(r.Header.Get(PasswordHeader)) }

// CheckPassword checks the password that a request gives for a link against its hash. id names the
// link, and curl shows how to give the password. The answer tells a client to ask for it.
func CheckPassword(
	w http.ResponseWriter, r *http.Request, passwords *auth.Authenticator, id, hash, curl string,
) error {
	err := error(fault.New(fault.Unauthorized, "this link needs a password: %s", curl))
	if given := Password(r); given != "" {
		err = passwords.CheckPassword(r.Context(), id, hash, given, auth.Source(r))
	}
	if fault.Is(err, fault.Unauthorized) {
		w.Header().Set("WWW-Authenticate", `Basic realm="link", charset="UTF-8"`)
	}
	return err
}
