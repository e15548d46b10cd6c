package boottest

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync"
	"time"
)

// SMTPOptions change how the server behaves.
type SMTPOptions struct {
	Implicit bool              // TLS from the start
	Silent   bool              // not even a greeting
	Hang     string            // the command that is never answered; "." is the message
	Offer    []string          // what the answer to EHLO offers
	Replies  map[string]string // by command, with "." for the message: replaces the usual reply
}

// SMTPServer speaks just enough SMTP to receive mail.
type SMTPServer struct {
	Address string         // host:port
	Hold    sync.Mutex     // while it is locked, no client is greeted
	Roots   *x509.CertPool // with the signer of its certificate

	options SMTPOptions
	cert    tls.Certificate

	mu   sync.Mutex
	talk Talk
}

// Talk is what clients have sent. Message i came at Times[i], over TLS if Secure[i].
type Talk struct {
	Lines    []string
	Messages []string // lines end with \n
	Times    []time.Time
	Secure   []bool
}

// NewSMTP returns a server that listens on a loopback port until the context ends.
func NewSMTP(ctx context.Context, o SMTPOptions) (*SMTPServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	web := httptest.NewTLSServer(nil) // only for its certificate
	defer web.Close()
	s := &SMTPServer{
		Address: l.Addr().String(),
		Roots:   x509.NewCertPool(),
		options: o,
		cert:    web.TLS.Certificates[0],
	}
	s.Roots.AddCert(web.Certificate())
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			context.AfterFunc(ctx, func() { conn.Close() })
			go s.handle(conn)
		}
	}()
	return s, nil
}

// Talk returns what clients have sent so far.
func (s *SMTPServer) Talk() Talk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.talk
}

func (s *SMTPServer) handle(conn net.Conn) {
	defer func() { conn.Close() }()
	if s.options.Implicit {
		conn = s.secure(conn)
	}
	if s.options.Silent {
		io.Copy(io.Discard, conn) // until the client disconnects
		return
	}
	text := textproto.NewConn(conn)
	s.Hold.Lock()
	text.PrintfLine("220 test ready")
	s.Hold.Unlock()
	for {
		line, err := text.ReadLine()
		if err != nil {
			return
		}
		s.note(func(talk *Talk) { talk.Lines = append(talk.Lines, line) })
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		if !s.reply(verb, text) {
			continue
		}
		switch verb {
		case "STARTTLS":
			conn = s.secure(conn)
			text = textproto.NewConn(conn)
		case "DATA":
			raw, err := text.ReadDotBytes()
			if err != nil {
				return
			}
			_, secure := conn.(*tls.Conn)
			if s.options.Hang != "." && s.options.Replies["."] == "" {
				s.note(func(talk *Talk) {
					talk.Messages, talk.Secure = append(
						talk.Messages,
						string(raw),
					), append(talk.Secure, secure)
					talk.Times = append(talk.Times, time.Now())
				})
			}
			s.reply(".", text)
		case "QUIT":
			return
		}
	}
}

func (s *SMTPServer) note(add func(*Talk)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.talk)
}

func (s *SMTPServer) secure(conn net.Conn) net.Conn {
	return tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{s.cert}})
}

// reply answers a command, or the message ".", and reports whether that was the usual reply.
func (s *SMTPServer) reply(verb string, text *textproto.Conn) bool {
	if verb == s.options.Hang {
		text.ReadLine() // until the client disconnects
		return false
	}
	if other := s.options.Replies[verb]; other != "" {
		text.PrintfLine("%s", other)
		return false
	}
	if verb == "EHLO" {
		for _, e := range append([]string{"test"}, s.options.Offer...) {
			text.PrintfLine("250-%s", e)
		}
	}
	text.PrintfLine("%s", cmp.Or(map[string]string{
		"EHLO":     "250 8BITMIME",
		"STARTTLS": "220 go on",
		"AUTH":     "235 welcome",
		"DATA":     "354 go on",
		"QUIT":     "221 bye",
	}[verb], "250 fine"))
	return true
}
