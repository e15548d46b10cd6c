package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// The size of a secret in bytes, as Standard Webhooks requires. New secrets have
// minSecret.
const (
	minSecret = 24
	maxSecret = 64

	secretPrefix = "whsec_"
)

// WebhookSecret is a key with which Ferry signs events, and receivers check them.
// Printing it does not reveal it.
type WebhookSecret struct{ key []byte }

// String hides the secret.
func (WebhookSecret) String() string { return "[secret]" }

// GoString hides the secret.
func (s WebhookSecret) GoString() string { return s.String() }

// NewWebhookSecret returns the text form of a new secret, read from random.
func NewWebhookSecret(random io.Reader) (string, error) {
	key := make([]byte, minSecret)
	if _, err := io.ReadFull(random, key); err != nil {
		return "", fmt.Errorf("making a webhook secret: %w", err)
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(key), nil
}

// ParseWebhookSecrets reads one secret or, while receivers change to a new one,
// several, separated by spaces. Events are signed with each.
func ParseWebhookSecrets(text string) ([]WebhookSecret, error) {
	var all []WebhookSecret
	for _, word := range strings.Fields(text) {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(word, secretPrefix))
		if err != nil || len(key) < minSecret || len(key) > maxSecret { // the text stays out of the error
			return nil, fmt.Errorf("a webhook secret is %s and then base64 of %d to %d bytes", secretPrefix, minSecret, maxSecret)
		}
		all = append(all, WebhookSecret{key})
	}
	if len(all) == 0 {
		return nil, errors.New("there is no webhook secret")
	}
	return all, nil
}

// signatures returns the header webhook-signature of Standard Webhooks.
func signatures(secrets []WebhookSecret, id string, at time.Time, body string) string {
	all := make([]string, len(secrets))
	for i, s := range secrets {
		mac := hmac.New(sha256.New, s.key)
		io.WriteString(mac, id+"."+strconv.FormatInt(at.Unix(), 10)+"."+body)
		all[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(all, " ")
}
