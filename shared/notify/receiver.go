package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ferry/shared/fault"
)

const (
	// MaxWebhooks is the maximum number of addresses: all copies of an event are written in one transaction.
	MaxWebhooks = 10
	// postTimeout is how long a receiver or a provider has to answer.
	postTimeout = 15 * time.Second
	// longestWait is the longest wait, in seconds, that a receiver can ask for.
	longestWait = 1 << 20
)

// refusedError is an answer other than 2xx. Its text reveals nothing of the address or
// the event.
type refusedError struct {
	status int
	wait   time.Duration // how long the receiver asks to wait, or 0
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the receiver answers %d", e.status)
}

// Receiver is an address, set by an operator, to which signed events are posted as Standard
// Webhooks specifies (https://www.standardwebhooks.com). The address may be in a private
// network, so redirects are not followed: a receiver could use them to reach another private
// address. It is safe for concurrent use.
type Receiver struct {
	ID      string       // unique; does not reveal the address
	Name    string       // scheme and host, for the log
	Client  *http.Client // shared by all receivers
	url     string       // may hold a secret; never logged
	secrets []WebhookSecret
}

// NewReceivers returns a Receiver for each distinct address, or an error if one is
// malformed. Events are signed with each of the secrets.
func NewReceivers(urls []string, secrets []WebhookSecret) ([]*Receiver, error) {
	if len(urls) > MaxWebhooks {
		return nil, fmt.Errorf("%d webhooks, but at most %d are allowed",
			len(urls), MaxWebhooks)
	}
	if len(urls) > 0 && len(secrets) == 0 {
		return nil, errors.New("there is no webhook secret")
	}
	var all []*Receiver
	client := NewClient()
	for _, text := range urls {
		u, ok := ParseAddress(text)
		if !ok {
			return nil, errors.New("a webhook must be a URL such as https://example.com/ferry-events") // it may hold a secret
		}
		if slices.ContainsFunc(all, func(r *Receiver) bool { return r.url == text }) {
			continue
		}
		sum := sha256.Sum256([]byte(text))
		id := base64.RawURLEncoding.EncodeToString(sum[:16])
		all = append(all, &Receiver{
			ID:      id,
			Name:    u.Scheme + "://" + u.Host,
			Client:  client,
			url:     text,
			secrets: secrets,
		})
	}
	return all, nil
}

// ParseAddress parses an operator's setting: the address of a program to post to with NewClient.
func ParseAddress(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	return u, err == nil &&
		(u.Scheme == "http" || u.Scheme == "https") &&
		u.Hostname() != "" &&
		u.Fragment == ""
}

// NewClient returns a client that posts to such addresses. It follows no redirect: another
// address must get neither the message nor a login.
func NewClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{
		Transport: transport,
		Timeout:   postTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// Post delivers an event. The text of its error reveals nothing of the address or
// the event.
func (r *Receiver) Post(ctx context.Context, now time.Time, id, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		return WithoutURL(err)
	}
	req.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	req.Header.Set("User-Agent", "Ferry")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("Webhook-Signature", signatures(r.secrets, id, now, body))
	resp, err := r.Client.Do(req)
	if err != nil {
		return WithoutURL(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be reused
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	err = &refusedError{resp.StatusCode, retryAfter(resp.Header.Get("Retry-After"))}
	if resp.StatusCode == http.StatusGone { // it wants no more events
		return fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	return err
}

// WithoutURL removes the address, which may hold a secret, from an error of the HTTP client.
func WithoutURL(err error) error {
	if named, ok := errors.AsType[*url.Error](err); ok {
		return named.Err
	}
	return err
}

// retryAfter reads a number of seconds; a date counts as 0.
func retryAfter(text string) time.Duration {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(max(0, min(n, longestWait))) * time.Second
}

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
	_, err := io.ReadFull(random, key)
	return secretPrefix + base64.StdEncoding.EncodeToString(key), fault.Wrap(
		err,
		"making a webhook secret",
	)
}

// ParseWebhookSecrets reads one secret or, while receivers change to a new one,
// several, separated by spaces. Events are signed with each.
func ParseWebhookSecrets(text string) ([]WebhookSecret, error) {
	var all []WebhookSecret
	for _, word := range strings.Fields(text) {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(word, secretPrefix))
		if err != nil || len(key) < minSecret || len(key) > maxSecret { // the text stays out of the error
			return nil, fmt.Errorf("a webhook secret is %s and then base64 of %d to %d bytes",
				secretPrefix, minSecret, maxSecret)
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
