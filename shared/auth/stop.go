package auth

import (
	"crypto/hmac"
	"net/url"
	"strings"
)

// Stop returns the token with which the owner of an e-mail address ends what
// is sent to it. It carries the address, and stays the same.
func (k LinkKey) Stop(address string) string {
	address = strings.ToLower(strings.TrimSpace(address))
	return encode(append(k.derive("stop", address), address...))
}

// StopAddress returns the address that a token of Stop carries; ok is false
// for any other token.
func (k LinkKey) StopAddress(token string) (address string, ok bool) {
	address, ok = TokenName(token)
	if !ok || !hmac.Equal([]byte(k.Stop(address)), []byte(token)) {
		return "", false
	}
	return address, true
}

// StopLink returns the link that ends what is sent to an address.
func StopLink(base, lang, token string) string {
	return base + "/notifications/stop?lang=" + url.QueryEscape(lang) + "&t=" + token
}
