package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"ferry/shared/blob"
)

// TokenSize is the number of bytes of a key and of a token.
const TokenSize = 32

// LinkKey derives secrets that must be reproducible: the tokens of files and the PINs
// in mails. Only code that makes links has one.
//
// A file's token is derived from a secret key and the file's place. So a list can show
// the same link each time while the table keeps only the token's hash: reading the
// table is not enough to open a link. Tokens of change links and bearers are random.
type LinkKey struct{ secret []byte }

// ParseLinkKey reads the text form of a key: a token from RandomToken.
func ParseLinkKey(text string) (LinkKey, error) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != TokenSize {
		return LinkKey{}, errors.New("the link key is not 43 characters of base64url")
	}
	return LinkKey{secret: b}, nil
}

// File returns the token of a file in one of its owner's areas.
func (k LinkKey) File(area blob.Area, owner string, id int64) string {
	return encode(k.derive("file", string(area), owner, strconv.FormatInt(id, 10)))
}

// Recipient returns the token of the link to a file that one recipient gets, in the
// notice with this id.
func (k LinkKey) Recipient(area blob.Area, owner string, id int64, notice string) string {
	return encode(k.derive("recipient", string(area), owner, strconv.FormatInt(id, 10), notice))
}

// Part returns the signature of a request that sends one part of an upload session.
// what is everything that the signature covers.
func (k LinkKey) Part(what ...string) string {
	return encode(k.derive(append([]string{"part"}, what...)...))
}

// PIN returns the 8 digits for a nonce.
func (k LinkKey) PIN(nonce string) string {
	n := binary.BigEndian.Uint64(k.derive("pin", nonce))
	return fmt.Sprintf("%08d", n%100_000_000)
}

// derive returns the HMAC-SHA256 of the parts, each ended by a byte that no part has.
func (k LinkKey) derive(parts ...string) []byte {
	if len(k.secret) != TokenSize {
		panic("auth: link key not set") // without a key, no links
	}
	mac := hmac.New(sha256.New, k.secret)
	io.WriteString(mac, strings.Join(parts, "\x00")+"\x00")
	return mac.Sum(nil)
}

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

// TokenName returns the name that a token made by RandomTokenFor carries.
func TokenName(token string) (string, bool) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) <= TokenSize {
		return "", false
	}
	return string(b[TokenSize:]), true
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

// Stop returns the token that lets the owner of an e-mail address stop mail to it. The
// token carries the address, and is always the same.
func (k LinkKey) Stop(address string) string {
	address = strings.ToLower(strings.TrimSpace(address))
	return encode(append(k.derive("stop", address), address...))
}

// StopAddress returns the address that a token from Stop carries. ok is false for any
// other token.
func (k LinkKey) StopAddress(token string) (address string, ok bool) {
	address, ok = TokenName(token)
	if !ok || !hmac.Equal([]byte(k.Stop(address)), []byte(token)) {
		return "", false
	}
	return address, true
}

// StopLink returns the link that stops mail to an address.
func StopLink(base, lang, token string) string {
	return base + "/notifications/stop?lang=" + url.QueryEscape(lang) + "&t=" + token
}
