// Package keys makes tokens and the addresses that contain them: random ones, and those that the
// link key derives. Start reading with LinkKey.
package keys

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strings"

	"ferry/shared/blob"
	"ferry/shared/fault"
)

// TokenSize is the number of bytes of a key and of a token. LinkToken is the number of characters of
// the token in a link to a file.
const TokenSize, LinkToken = 32, 43

// RandomToken returns a token of 256 random bits.
func RandomToken(random io.Reader) (string, error) {
	return RandomTokenFor(random, "")
}

// RandomTokenFor returns a token of 256 random bits that also carries a name, which
// TokenName reads. So one call can fetch the items of the token and of its user.
func RandomTokenFor(random io.Reader, name string) (string, error) {
	b := make([]byte, TokenSize, TokenSize+len(name))
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	return encode(append(b, name...)), nil
}

// RandomID returns this many random bytes in hexadecimal.
func RandomID(random io.Reader, bytes int) (string, error) {
	b := make([]byte, bytes)
	_, err := io.ReadFull(random, b)
	return hex.EncodeToString(b), fault.Wrap(err, "making an identifier")
}

// TokenName returns the name that a token made by RandomTokenFor carries.
func TokenName(token string) (string, bool) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) <= TokenSize {
		return "", false
	}
	return string(b[TokenSize:]), true
}

// RequestID is the length of a request's id. requestPrefix begins the token of its link.
const RequestID, requestPrefix = 16, "in_"

// RequestPlace returns the owner and the id that a token from LinkKey.Request carries. ok is false
// for most other tokens.
func RequestPlace(token string) (owner, id string, ok bool) {
	text, isRequest := strings.CutPrefix(token, requestPrefix)
	place, carries := TokenName(text)
	if !isRequest || !carries || len(place) <= RequestID {
		return "", "", false
	}
	id, owner = place[:RequestID], place[RequestID:]
	_, err := hex.DecodeString(id)
	return owner, id, err == nil
}

// HashToken returns the form in which a token is stored: SHA-256, base64url. A fast
// hash is enough, as tokens have 256 bits of entropy.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return encode(sum[:])
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// DownloadLink returns the link of a file in an area, without the token that must be
// appended. base has no trailing slash.
func DownloadLink(base, lang string, area blob.Area) string {
	if area == blob.Backup {
		return base + "/download/file/backup?lang=" + url.QueryEscape(lang) + "&z="
	}
	return base + "/download/file?lang=" + url.QueryEscape(lang) + "&k="
}

// ChangeLink returns the link that changes a password.
func ChangeLink(base, lang, token string) string {
	return base + "/auth/change?lang=" + url.QueryEscape(lang) + "&k=" + token
}

// StopLink returns the link that stops mail to an address.
func StopLink(base, lang, token string) string {
	return base + "/notifications/stop?lang=" + url.QueryEscape(lang) + "&t=" + token
}
