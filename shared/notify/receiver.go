package notify

import (
	"context"
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
)

const (
	// MaxWebhooks is the most addresses: all copies of an event are written in
	// one transaction.
	MaxWebhooks = 10
	// postTimeout is how long a receiver has to answer.
	postTimeout = 15 * time.Second
	// longestWait is the longest that a receiver can ask to wait.
	longestWait = 1 << 20
)

// refusedError is an answer other than 2xx. Its text reveals nothing of the address or
// the event.
type refusedError struct {
	status int
	wait   time.Duration // how long the receiver asks to wait, or 0
}

func (e *refusedError) Error() string { return fmt.Sprintf("the receiver answers %d", e.status) }

// Receiver is an address, set by an operator, to which signed events are posted as
// Standard Webhooks says (https://www.standardwebhooks.com). The address may be in a
// private network, so redirects are not followed: a receiver could use them to reach
// another private address. It is safe for concurrent use.
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
		return nil, fmt.Errorf("there are %d webhooks, but at most %d are allowed", len(urls), MaxWebhooks)
	}
	if len(urls) > 0 && len(secrets) == 0 {
		return nil, errors.New("there is no webhook secret")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	client := &http.Client{
		Transport: transport, Timeout: postTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var all []*Receiver
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
			return nil, errors.New("a webhook is not an address such as https://example.com/ferry-events") // it may hold a secret
		}
		if slices.ContainsFunc(all, func(r *Receiver) bool { return r.url == text }) {
			continue
		}
		sum := sha256.Sum256([]byte(text))
		id := base64.RawURLEncoding.EncodeToString(sum[:16])
		all = append(all, &Receiver{ID: id, Name: u.Scheme + "://" + u.Host, Client: client, url: text, secrets: secrets})
	}
	return all, nil
}

// Post delivers an event. The text of its error reveals nothing of the address or
// the event.
func (r *Receiver) Post(ctx context.Context, now time.Time, id, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	req.Header.Set("User-Agent", "Ferry")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("Webhook-Signature", signatures(r.secrets, id, now, body))
	resp, err := r.Client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	err = &refusedError{resp.StatusCode, retryAfter(resp.Header.Get("Retry-After"))}
	if resp.StatusCode == http.StatusGone { // it wants no more events
		return fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	return err
}

// withoutURL removes the address from an error of the HTTP client.
func withoutURL(err error) error {
	var named *url.Error
	if errors.As(err, &named) {
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
