// Package gateway sends text messages through a provider's HTTP interface, with one POST
// for each. Start reading at New and Sender.Send.
package gateway

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"ferry/shared/fault"
	"ferry/shared/lazy"
	"ferry/shared/notify"
)

// At most maxAnswer bytes of an answer are read, and at most maxShown are kept.
const maxAnswer, maxShown = 64 << 10, 200

// Config says how the provider wants its requests.
type Config struct {
	URL string // with user:password@ before the host, if the provider wants a login
	// Body is twilio, vonage, or a template of JSON or a form, with {to}, {digits}
	// (without the plus), {from}, {text} and {id}. Empty is JSON with to, from and text.
	Body          string
	From          string // the sender, as {from}
	Authorization string // the value of that header, such as Bearer TOKEN, or empty
}

// Sender posts to one address. It is safe for concurrent use.
type Sender struct {
	config  Config
	client  *http.Client
	kind    string // of the body
	escape  func(string) string
	secrets []string // hidden in answers
}

// New returns a Sender. It makes no connection. Errors do not show the configuration.
func New(c Config) (*Sender, error) {
	u, ok := notify.ParseAddress(c.URL)
	if !ok {
		return nil, errors.New("the SMS provider's address must be a URL such as https://sms.example.com/send")
	}
	password, _ := u.User.Password()
	if u.User != nil {
		c.Authorization = "Basic " +
			base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	u.User = nil
	c.URL, c.Body = u.String(), template(c.Body)
	s := &Sender{
		config: c,
		client: notify.NewClient(),
		kind:   "application/x-www-form-urlencoded",
		escape: url.QueryEscape,
	}
	if strings.HasPrefix(c.Body, "{") || strings.HasPrefix(c.Body, "[") {
		s.kind, s.escape = "application/json", inJSON
	}
	// A secret key may be anywhere in the address or the body.
	s.secrets = append(long(c.URL+" "+c.Body), password)
	s.secrets = append(s.secrets, strings.Fields(c.Authorization)...)
	return s, s.checkBody()
}

// template returns the template that Config.Body stands for.
func template(body string) string {
	switch body = strings.TrimSpace(body); body {
	case "":
		return `{"to":"{to}","from":"{from}","text":"{text}"}`
	case "twilio": // https://www.twilio.com/docs/messaging/api/message-resource
		return "To={to}&From={from}&Body={text}"
	case "vonage": // https://developer.vonage.com/en/api/messages
		return `{"message_type":"text","channel":"sms","to":"{digits}","from":"{from}","text":"{text}"}`
	}
	return body
}

// checkBody checks that the body is well formed, whatever the text.
func (s *Sender) checkBody() error {
	body := s.fill(notify.TextMessage{ID: "1-a", To: "+391", Text: `"&`})
	_, err := url.ParseQuery(body)
	has := func(word string) bool { return strings.Contains(s.config.Body, word) }
	switch isJSON := s.kind == "application/json"; {
	case isJSON && !json.Valid([]byte(body)), !isJSON && (err != nil || !has("=")):
		return errors.New("the SMS body must be twilio, vonage, JSON or a form, such as " +
			template(""))
	case !has("{text}") ||
		!has("{to}") && !has("{digits}") ||
		has("{from}") && s.config.From == "":
		return errors.New("the SMS body needs {text}, and {to} or {digits}; with {from} it needs a sender too")
	}
	return nil
}

// fill returns the body of a message. The message cannot change its structure.
func (s *Sender) fill(m notify.TextMessage) string {
	return strings.NewReplacer(
		"{to}", s.escape(m.To), "{digits}", s.escape(strings.TrimPrefix(
			m.To,
			"+",
		)), "{from}", s.escape(s.config.From),
		"{text}", s.escape(m.Text), "{id}", s.escape(m.ID),
	).Replace(s.config.Body)
}

// inJSON escapes text for use between quotation marks.
func inJSON(text string) string {
	quoted, _ := json.Marshal(text) // text always marshals
	return string(quoted[1 : len(quoted)-1])
}

// Send implements notify.TextSender.
func (s *Sender) Send(ctx context.Context, m notify.TextMessage) (string, error) {
	name, err := "", m.Check()
	if err == nil {
		name, err = s.post(ctx, s.fill(m), append(long(m.Text), s.secrets...))
	}
	return name, fault.Wrap(err, "sending a text message")
}

// post returns the provider's ID for the message. Only a refusal of the message itself is final:
// the address, the login and the credit can be corrected.
func (s *Sender) post(
	ctx context.Context,
	body string,
	secrets []string,
) (name string, err error) {
	r, err := http.NewRequestWithContext(
		ctx,
		http.MethodPost,
		s.config.URL,
		strings.NewReader(body),
	)
	if err != nil {
		return "", errors.New("the address is malformed")
	}
	r.Header.Set("Content-Type", s.kind)
	r.Header.Set("User-Agent", "Ferry")
	if s.config.Authorization != "" {
		r.Header.Set("Authorization", s.config.Authorization)
	}
	response, err := s.client.Do(r)
	if err != nil {
		return "", notify.WithoutURL(err)
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	status := response.StatusCode
	if status >= 200 && status < 300 {
		return nameIn(answer), nil
	}
	text := string(answer)
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}
	err = fmt.Errorf("the provider answers %d: %s", status, shown(text))
	final := []int{
		http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
	}
	if slices.Contains(final, status) {
		return "", fmt.Errorf("%w: %w", notify.ErrTextRefused, err)
	}
	return "", err
}

// long returns all words that are long enough to be keys or link tokens.
func long(text string) []string { return longWords().FindAllString(text, -1) }

var longWords = lazy.Regexp(`[\w.~-]{16,}`)

// nameIn returns the ID of the message in a provider's answer, or "".
func nameIn(answer []byte) string {
	var found struct {
		SID  string `json:"sid"`          // Twilio
		UUID string `json:"message_uuid"` // Vonage
		ID   string `json:"id"`
	}
	_ = json.Unmarshal(answer, &found) // it may be anything
	return shown(cmp.Or(found.SID, found.UUID, found.ID))
}

func shown(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxShown)], "")
}
