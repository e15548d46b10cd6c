package smtp

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync"
	"testing"
)

// testServer speaks as much SMTP on a loopback port as a Sender needs.
type testServer struct {
	address string // host:port
	cert    tls.Certificate
	roots   *x509.CertPool

	implicit bool              // TLS from the start
	offer    []string          // what EHLO offers
	replies  map[string]string // by command, such as "RCPT", "." for the message: instead of the usual reply
	hang     string            // the command that is never answered; "" with silent for the greeting
	silent   bool

	mu       sync.Mutex
	lines    []string // commands as received
	messages []string // messages as received
	secure   []bool   // for each message, if it came over TLS
}

// start serves until the test ends.
func (s *testServer) start(t *testing.T) *testServer {
	t.Helper()
	web := httptest.NewTLSServer(nil) // for its certificate alone
	s.cert = web.TLS.Certificates[0]
	s.roots = x509.NewCertPool()
	s.roots.AddCert(web.Certificate())
	web.Close()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	var wg sync.WaitGroup
	var conns []net.Conn
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		s.mu.Unlock()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			conns = append(conns, conn)
			s.mu.Unlock()
			wg.Go(func() { s.serve(conn) })
		}
	})
	return s
}

func (s *testServer) config() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{s.cert}}
}

func (s *testServer) serve(conn net.Conn) {
	defer func() { conn.Close() }()
	if s.implicit {
		conn = tls.Server(conn, s.config())
	}
	if s.silent {
		io.Copy(io.Discard, conn) // until the client goes
		return
	}
	text := textproto.NewConn(conn)
	text.PrintfLine("220 test ready")
	for {
		line, err := text.ReadLine()
		if err != nil {
			return
		}
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		s.note(line)
		if verb == s.hang {
			text.ReadLine() // until the client goes
			return
		}
		if reply := s.replies[verb]; reply != "" {
			text.PrintfLine("%s", reply)
			continue
		}
		switch verb {
		case "EHLO":
			for _, e := range append([]string{"test"}, s.offer...) {
				text.PrintfLine("250-%s", e)
			}
			text.PrintfLine("250 8BITMIME")
		case "STARTTLS":
			text.PrintfLine("220 go on")
			conn = tls.Server(conn, s.config())
			text = textproto.NewConn(conn)
		case "AUTH":
			text.PrintfLine("235 welcome")
		case "DATA":
			text.PrintfLine("354 go on")
			if !s.receive(text, conn) {
				return
			}
		case "QUIT":
			text.PrintfLine("221 bye")
			return
		default:
			text.PrintfLine("250 fine")
		}
	}
}

func (s *testServer) receive(text *textproto.Conn, conn net.Conn) bool {
	raw, err := text.ReadDotBytes()
	if err != nil {
		return false
	}
	if s.hang == "." {
		text.ReadLine()
		return false
	}
	if reply := s.replies["."]; reply != "" {
		text.PrintfLine("%s", reply)
		return true
	}
	_, secure := conn.(*tls.Conn)
	s.mu.Lock()
	s.messages = append(s.messages, string(raw))
	s.secure = append(s.secure, secure)
	s.mu.Unlock()
	text.PrintfLine("250 taken")
	return true
}

func (s *testServer) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

func (s *testServer) received() (messages []string, secure []bool, lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages, s.secure, s.lines
}
