// Package smtp sends e-mail through an SMTP server. Start reading at New and
// Sender.Send; address.go reads the server's address.
package smtp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"ferry/shared/contact"
	"ferry/shared/lazy"
	"ferry/shared/notify/mail"
)

const (
	// timeout bounds one Send, even if the caller's context leaves more time.
	timeout = 30 * time.Second
	// quitTimeout bounds QUIT, when the mail is already sent.
	quitTimeout = 2 * time.Second
)

// Sender sends through one server, with a connection per message. It is safe
// for concurrent use.
type Sender struct {
	server server
	tls    *tls.Config
}

// New returns a Sender for the server at an address: smtp://host (STARTTLS,
// port 587) or smtps://host (TLS from the start, port 465), with user:password@
// before and :port after the host as needed. STARTTLS is mandatory, except on a
// loopback host or with ?tls=off; ?tls=on makes it mandatory there too. Without TLS
// a password is sent only to a loopback host. No connection is made yet.
func New(address string) (*Sender, error) {
	s, err := parse(address)
	if err != nil {
		return nil, err
	}
	return &Sender{s, &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12}}, nil
}

// Send implements mail.Sender. It returns the Message-ID. When the context ends, so does the
// connection.
func (s *Sender) Send(ctx context.Context, m mail.Message) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel() // closes the connection too
	env, err := m.Envelope()
	if err != nil {
		return "", fmt.Errorf("sending mail: %w", err)
	}
	client, err := s.client(ctx, env)
	if err != nil {
		return "", fmt.Errorf("preparing to send mail: %w", err)
	}
	conn, err := client.DialToSMTPClientWithContext(ctx) // closed when ctx ends, hence ctx.Err below
	if err != nil {
		return "", fmt.Errorf("connecting to the mail server: %w", cmp.Or(ctx.Err(), err))
	}
	if utf8, _ := conn.Extension("SMTPUTF8"); !utf8 {
		if !plain(env.To) {
			conn.Quit()
			return "", fmt.Errorf("%w: %w", mail.ErrPermanent, contact.ErrLocal)
		}
		if !plain(env.ReplyTo) {
			env.ReplyTo = nil // this header would need SMTPUTF8 too
		}
	}
	msg := compose(m, env)
	err = client.SendWithSMTPClient(conn, msg)
	if err != nil && !msg.IsDelivered() {
		return "", fmt.Errorf("sending mail: %w", cmp.Or(ctx.Err(), classify(err)))
	}
	if conn.UpdateDeadline(quitTimeout) == nil {
		conn.Quit()
	}
	return msg.GetMessageID(), nil
}

// client returns a client for one message, which dials with that message's context.
func (s *Sender) client(ctx context.Context, env mail.Envelope) (*gomail.Client, error) {
	opts := []gomail.Option{
		gomail.WithPort(s.server.port),
		gomail.WithTimeout(timeout),
		gomail.WithTLSConfig(s.tls),
		gomail.WithDialContextFunc(s.dial(ctx)),
		gomail.WithoutNoop(),
		gomail.WithoutRset(),
	}
	logins := []gomail.SMTPAuthType{
		gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin,
	}
	switch s.server.security {
	case startTLS:
		opts = append(opts, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case implicitTLS:
		opts = append(opts, gomail.WithSSL())
	case noTLS:
		opts = append(opts, gomail.WithTLSPolicy(gomail.NoTLS))
		logins = []gomail.SMTPAuthType{
			gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc,
		}
	}
	if s.server.user != "" {
		opts = append(
			opts,
			gomail.WithUsername(s.server.user),
			gomail.WithPassword(s.server.password),
			gomail.WithOpportunisticSMTPAuth(logins...),
		)
	}
	if plain(env.From) && plain(env.To) && plain(env.ReplyTo) {
		// Needless SMTPUTF8 would make the mail bounce at older servers on its way.
		opts = append(opts, gomail.WithoutSMTPUTF8())
	}
	return gomail.NewClient(s.server.host, opts...)
}

// dial connects, and closes the connection when ctx ends, because the client respects its context
// only while it dials.
func (s *Sender) dial(ctx context.Context) gomail.DialContextFunc {
	return func(dialing context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(
			dialing,
			network,
			net.JoinHostPort(s.server.host, strconv.Itoa(s.server.port)),
		)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { conn.Close() })
		if s.server.security != implicitTLS {
			return conn, nil
		}
		secure := tls.Client(conn, s.tls)
		return secure, secure.HandshakeContext(dialing)
	}
}

// classify marks what the server will always refuse. Replies about the sender's address or the
// login are about our settings, which can be corrected. It also marks what is clearly the
// server's sending limit: no SMTP code says so, only the text.
func classify(err error) error {
	refused, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return err
	}
	text, _, _ := strings.Cut(refused.Error(), ", affected ") // what follows repeats the recipient
	err = errors.New(text)
	code := refused.ErrorCode()
	about := refused.Reason == gomail.ErrSMTPRcptTo ||
		refused.Reason == gomail.ErrSMTPData ||
		refused.Reason == gomail.ErrSMTPDataClose
	login := code == 530 || code == 534 || code == 535 || code == 538
	said := anyAddress().ReplaceAllString(text, "") // an address may contain these words
	if about && code >= 400 && code < 500 {
		err = fmt.Errorf("%w: %w", mail.ErrLater, err)
	}
	switch {
	case about && code >= 500 && !login:
		return fmt.Errorf("%w: %w", mail.ErrPermanent, err)
	case code >= 500 || ofMailbox().MatchString(text):
		return err
	case ofQuota().MatchString(said):
		return fmt.Errorf("%w: %w", mail.ErrQuota, err)
	case ofRate().MatchString(said):
		return fmt.Errorf("%w: %w", mail.ErrRate, err)
	}
	return err
}

func compose(m mail.Message, env mail.Envelope) *gomail.Msg {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(env.From)
	msg.ToMailAddress(&netmail.Address{Address: env.To.Address})
	if env.ReplyTo != nil {
		msg.ReplyToMailAddress(env.ReplyTo)
	}
	domain := env.From.Address[strings.LastIndex(env.From.Address, "@"):]
	msg.SetMessageIDWithValue(m.ID + domain)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no vacation replies, please
	if m.Unsubscribe != "" {
		msg.SetGenHeaderPreformatted("List-Unsubscribe", "<"+m.Unsubscribe+">") // encoded, it would not be an address
		msg.SetGenHeader("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	msg.Subject(m.SubjectLine())
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	return msg
}

// plain reports whether an address needs no SMTPUTF8. A nil address needs none.
func plain(a *netmail.Address) bool { return a == nil || contact.CheckLocal(a.Address) == nil }

// What the answers of mail servers say.
var (
	anyAddress = lazy.Regexp(`\S*@\S*`)
	ofMailbox  = lazy.Regexp(`\b4\.2\.\d`) // that of the recipient
	ofQuota    = lazy.Regexp(`(?i)daily|sending quota`)
	ofRate     = lazy.Regexp(`(?i)throttl|\brate\b|too (many|much mail|fast|quickly)`)
)
