package smtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
	"ferry/shared/contact"
	"ferry/shared/notify/mail"
)

func message() mail.Message {
	return mail.Message{
		ID: "0001-abc", From: "Ferry <ferry@example.org>", To: "ann@example.com", ReplyTo: "demo@example.net",
		Subject: "A file", Text: "text of the mail\n", HTML: "<p>HTML of the mail</p>\n",
	}
}

// start returns a server that listens on a loopback port until the test ends.
func start(t *testing.T, o boottest.SMTPOptions) *boottest.SMTPServer {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	s, err := boottest.NewSMTP(ctx, o)
	must(t, err)
	return s
}

// sender returns a Sender for the server that trusts the server's certificate.
func sender(t *testing.T, scheme, login, options string, srv *boottest.SMTPServer) *Sender {
	t.Helper()
	s, err := New(scheme + "://" + login + srv.Address + options)
	must(t, err)
	s.tls.RootCAs = srv.Roots
	return s
}

func send(t *testing.T, srv *boottest.SMTPServer, m mail.Message) (provider string, err error) {
	t.Helper()
	return sender(t, "smtp", "", "", srv).Send(t.Context(), m)
}

// only returns the one message the server got.
func only(t *testing.T, srv *boottest.SMTPServer) (*netmail.Message, string) {
	t.Helper()
	messages := srv.Talk().Messages
	if len(messages) != 1 {
		t.Fatalf("%d messages arrived, want 1", len(messages))
	}
	m, err := netmail.ReadMessage(strings.NewReader(messages[0]))
	must(t, err)
	return m, messages[0]
}

func decoded(t *testing.T, header string) string {
	t.Helper()
	s, err := new(mime.WordDecoder).DecodeHeader(header)
	must(t, err)
	return s
}

func parts(t *testing.T, m *netmail.Message) map[string]string {
	t.Helper()
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("the message is %s, %v", kind, err)
	}
	found := map[string]string{}
	r := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return found
		}
		must(t, err)
		if enc := p.Header.Get("Content-Transfer-Encoding"); enc != "quoted-printable" {
			t.Errorf("a part's encoding is %s", enc)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(p))
		must(t, err)
		found[p.Header.Get("Content-Type")] = string(body)
	}
}

func TestMailArrivesAsTextAndHTML(t *testing.T) {
	t.Parallel()
	srv := start(t, boottest.SMTPOptions{})
	m := message()
	m.Subject = "demo hat dir eine Datei geschickt: " + strings.Repeat("Über 你好 🚢 ", 12) + "Ende"
	m.Text = "Grüße, 你好 🚢\n" + strings.Repeat("long ", 300) + "\n.\nafter a lone dot\n"
	m.HTML = "<p>Grüße, 你好 🚢</p>\n"
	m.Unsubscribe = "https://ferry.example.org/v1/notifications/stop?lang=en&t=0123456789_-0123456789_-0123456789_-0123456789"
	provider, err := send(t, srv, m)
	must(t, err)
	got, raw := only(t, srv)
	for header, want := range map[string]string{
		"From": `"Ferry" <ferry@example.org>`, "To": "<ann@example.com>", "Reply-To": "<demo@example.net>",
		"Message-Id": "<0001-abc@example.org>", "Auto-Submitted": "auto-generated", "Mime-Version": "1.0",
		"List-Unsubscribe": "<" + m.Unsubscribe + ">", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
	} {
		expect.Equal(t, header, got.Header.Get(header), want)
	}
	if _, err := got.Header.Date(); err != nil || provider != got.Header.Get("Message-Id") {
		t.Errorf("the date: %v, and Send returns %s", err, provider)
	}
	expect.Equal(t, "the subject", decoded(t, got.Header.Get("Subject")), m.Subject)
	want := map[string]string{"text/plain; charset=UTF-8": m.Text, "text/html; charset=UTF-8": m.HTML}
	expect.Equal(t, "the bodies", parts(t, got), want)
	for line := range strings.Lines(raw) {
		if len(line) > 79 && !strings.HasPrefix(line, "List-Unsubscribe: ") || !contact.IsASCII(line) {
			t.Errorf("a line that some servers refuse: %q", line)
		}
	}
	lines := srv.Talk().Lines
	if !slices.Contains(lines, "RCPT TO:<ann@example.com>") || !slices.Contains(lines, "QUIT") {
		t.Errorf("the talk was %q", lines)
	}
}

func TestUserTextNeverBecomesAHeader(t *testing.T) {
	t.Parallel()
	const evil = "Hi\r\nBcc: spy@example.org\r\n\r\n<b>body</b>\x00\x1b\u2028end"
	tests := []struct {
		name   string
		change func(*mail.Message)
		sent   bool
	}{
		{name: "in the subject", change: func(m *mail.Message) { m.Subject = evil }, sent: true},
		{
			name:   "in a long subject of another script",
			change: func(m *mail.Message) { m.Subject = strings.Repeat("ü你", 100) + evil },
			sent:   true,
		},
		{
			name:   "in the subject without a space",
			change: func(m *mail.Message) { m.Subject = strings.Repeat("x", 500) + "\nBcc:y" },
			sent:   true,
		},
		{
			name:   "as an encoded word",
			change: func(m *mail.Message) { m.Subject = "=?utf-8?q?Hi=0D=0ABcc:_spy@example.org?=" },
			sent:   true,
		},
		{name: "in the bodies", change: func(m *mail.Message) { m.Text, m.HTML = evil, evil }, sent: true},
		{name: "in the recipient", change: func(m *mail.Message) { m.To += "\r\nBcc: spy@example.org" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, boottest.SMTPOptions{})
			m := message()
			tt.change(&m)
			_, err := send(t, srv, m)
			if !tt.sent {
				if messages := srv.Talk().Messages; !errors.Is(err, mail.ErrPermanent) || len(messages) != 0 {
					t.Fatalf("got %v and %d messages", err, len(messages))
				}
				return
			}
			must(t, err)
			got, raw := only(t, srv)
			if got.Header.Get("Bcc") != "" || len(got.Header) != 9 {
				t.Errorf("headers %v", got.Header)
			}
			head, _, _ := strings.Cut(raw, "\n\n")
			for line := range strings.Lines(head) {
				if len(line) > 998 {
					t.Errorf("a header line of %d bytes", len(line))
				}
			}
			if s := decoded(t, got.Header.Get("Subject")); strings.ContainsAny(s, "\r\n\x00\x1b\u2028") {
				t.Errorf("the subject arrived as %q", s)
			}
		})
	}
}

func TestAReplySaysWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command, reply string
		want           error
	}{
		{command: "RCPT", reply: "550 5.1.1 no such user ann@example.com", want: mail.ErrPermanent},
		{command: ".", reply: "554 5.7.1 too many links, looks like spam", want: mail.ErrPermanent},
		{command: "DATA", reply: "554 5.5.1 no valid recipients", want: mail.ErrPermanent},
		{command: "RCPT", reply: "450 4.2.0 greylisted"},
		{command: "MAIL", reply: "553 5.7.1 not yours"},               // the settings may be corrected
		{command: "RCPT", reply: "530 5.7.0 authentication required"}, // so may these
		{command: "EHLO", reply: "554 go away"},
		{command: ".", reply: "454 Throttling failure: Maximum sending rate exceeded.", want: mail.ErrRate},
		{command: ".", reply: "454 Throttling failure: Daily message quota exceeded.", want: mail.ErrQuota},
		{command: "MAIL", reply: "421 4.7.28 unusual rate of mail from your address", want: mail.ErrRate},
		{command: "MAIL", reply: "450 4.7.1 Error: too much mail from 192.0.2.1", want: mail.ErrRate},
		{command: "RCPT", reply: "451 4.7.1 too many messages, slow down", want: mail.ErrRate},
		{command: "RCPT", reply: "452 4.5.3 your daily sending quota is exceeded", want: mail.ErrQuota},
		{command: "RCPT", reply: "452 4.2.2 the mailbox is over its daily quota"},
		{command: "RCPT", reply: "451 4.3.0 corporate policy server is down"},
		{command: "RCPT", reply: "450 4.7.1 <news@daily.example>: recipient address rejected: try again later"},
	} {
		srv := start(t, boottest.SMTPOptions{Replies: map[string]string{tt.command: tt.reply, "HELO": tt.reply}})
		_, err := send(t, srv, message())
		for _, kind := range []error{mail.ErrPermanent, mail.ErrRate, mail.ErrQuota} {
			if err == nil || errors.Is(err, kind) != (kind == tt.want) {
				t.Fatalf("%s %s: got %v, want %v", tt.command, tt.reply, err, tt.want)
			}
		}
		later := tt.reply[0] == '4' && tt.command != "MAIL"
		if errors.Is(err, mail.ErrLater) != later {
			t.Errorf("got %v; minutes later is %v", err, later)
		}
		if strings.Contains(err.Error(), "affected") {
			t.Errorf("the error repeats the recipient: %v", err)
		}
	}
}

// TestAnAddressOfAnyScriptReachesItsServer sends to servers with and without SMTPUTF8.
func TestAnAddressOfAnyScriptReachesItsServer(t *testing.T) {
	t.Parallel()
	const domain, reply = "ann@xn--bcher-kva.example", "<eve@xn--fsqu00a.example>"
	for name, c := range map[string]struct {
		offer        []string
		to, reply    string
		rcpt, header string // the last is Reply-To; without rcpt it fails for good
	}{
		"a domain of another script": {
			to:     "ann@bücher.example",
			reply:  "eve@例子.example",
			rcpt:   domain,
			header: reply,
		},
		"the same with SMTPUTF8": {
			offer:  []string{"SMTPUTF8"},
			to:     "ann@bücher.example",
			reply:  "eve@例子.example",
			rcpt:   domain,
			header: reply,
		},
		"letters before the @ at a server that takes them": {
			offer: []string{"SMTPUTF8"},
			to:    "jörg@bücher.example",
			rcpt:  "jörg@xn--bcher-kva.example",
		},
		"letters before the @ at a server that does not": {to: "jörg@bücher.example"},
		"a reply address that the server cannot take":    {to: domain, reply: "jörg@example.com", rcpt: domain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, boottest.SMTPOptions{Offer: c.offer})
			m := message()
			m.To, m.From, m.ReplyTo = c.to, "ferry@müller.example", c.reply
			_, err := send(t, srv, m)
			talk := strings.Join(srv.Talk().Lines, "\n")
			if c.rcpt == "" {
				if !errors.Is(err, mail.ErrPermanent) ||
					!errors.Is(err, contact.ErrLocal) ||
					strings.Contains(talk, "RCPT") {
					t.Errorf("got %v; the talk was %s", err, talk)
				}
				return
			}
			must(t, err)
			got, _ := only(t, srv)
			if !strings.Contains(talk, "RCPT TO:<"+c.rcpt+">") ||
				!strings.Contains(talk, "MAIL FROM:<ferry@xn--mller-kva.example>") ||
				strings.Contains(talk, "SMTPUTF8") != !contact.IsASCII(c.rcpt) {
				t.Errorf("the talk was %s", talk)
			}
			if got.Header.Get("Reply-To") != c.header || !strings.Contains(got.Header.Get("To"), c.rcpt) {
				t.Errorf("the headers are %v", got.Header)
			}
		})
	}
}

func TestServerThatIsDownMayRecover(t *testing.T) {
	t.Parallel()
	s, err := New("smtp://127.0.0.1:1")
	must(t, err)
	if _, err := s.Send(t.Context(), message()); err == nil || errors.Is(err, mail.ErrPermanent) {
		t.Errorf("got %v", err)
	}
}

func TestFailedQuitDoesNotFailTheMail(t *testing.T) {
	t.Parallel()
	srv := start(t, boottest.SMTPOptions{Replies: map[string]string{"QUIT": "421 no"}})
	_, err := send(t, srv, message())
	must(t, err)
	only(t, srv)
}

func TestSendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server boottest.SMTPOptions
		scheme string
	}{
		"at the greeting":      {boottest.SMTPOptions{Silent: true}, "smtp"},
		"in the TLS handshake": {boottest.SMTPOptions{Silent: true}, "smtps"},
		"after the message":    {boottest.SMTPOptions{Hang: "."}, "smtp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, c.server)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := sender(t, c.scheme, "", "", srv).Send(ctx, message())
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, mail.ErrPermanent) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestTLSProtectsLoginAndMessage(t *testing.T) {
	t.Parallel()
	const plainLogin = "AUTH PLAIN AGFubgBzM2NyZXQ=" // of ann with s3cret
	for name, c := range map[string]struct {
		server          boottest.SMTPOptions
		scheme, options string
		untrusted       bool   // the server's certificate
		secure          []bool // the messages that arrive
		login           string // what the server hears
	}{
		"STARTTLS protects login and message": {
			server: boottest.SMTPOptions{Offer: []string{"STARTTLS", "AUTH PLAIN LOGIN"}},
			scheme: "smtp", options: "?tls=on", secure: []bool{true}, login: plainLogin,
		},
		"smtps is TLS from the start": {
			server: boottest.SMTPOptions{Implicit: true, Offer: []string{"AUTH LOGIN PLAIN"}},
			scheme: "smtps", secure: []bool{true}, login: "AUTH ",
		},
		"a loopback server gets the login without TLS": {
			server: boottest.SMTPOptions{Offer: []string{"AUTH PLAIN"}},
			scheme: "smtp", secure: []bool{false}, login: plainLogin,
		},
		"a server without STARTTLS gets neither password nor message": {
			server: boottest.SMTPOptions{Offer: []string{"AUTH PLAIN LOGIN"}},
			scheme: "smtp", options: "?tls=on",
		},
		"a certificate that is not trusted stops the mail": {
			server: boottest.SMTPOptions{Offer: []string{"STARTTLS", "AUTH PLAIN"}},
			scheme: "smtp", options: "?tls=on", untrusted: true,
		},
		"a refused login is temporary and does not show the password": {
			server: boottest.SMTPOptions{
				Offer: []string{"AUTH PLAIN"}, Replies: map[string]string{"AUTH": "535 5.7.8 bad credentials"},
			},
			scheme: "smtp", login: plainLogin,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, c.server)
			s := sender(t, c.scheme, "ann:s3cret@", c.options, srv)
			if c.untrusted {
				s.tls.RootCAs = nil
			}
			_, err := s.Send(t.Context(), message())
			if (err == nil) != (c.secure != nil) ||
				errors.Is(err, mail.ErrPermanent) ||
				strings.Contains(fmt.Sprint(err), "s3cret") {
				t.Errorf("got %v", err)
			}
			expect.Equal(t, "over TLS", srv.Talk().Secure, c.secure)
			talk := strings.Join(srv.Talk().Lines, " ")
			login := strings.Index(talk, "AUTH")
			if (login >= 0) != (c.login != "") ||
				!strings.Contains(talk, c.login) ||
				login >= 0 && login < strings.Index(talk, "STARTTLS") {
				t.Errorf("the talk was %q", talk)
			}
		})
	}
}

// must ends the test if there is an error.
var must = expect.NoErr
