package inbox

import (
	_ "embed"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"ferry/shared/envelope"
	"ferry/shared/fault"
)

//go:embed page.html
var pageSource string

var (
	page = sync.OnceValue(func() *template.Template { return template.Must(template.New("inbox").Parse(pageSource)) })
	// notable is what people look for in a message: a link, or a PIN alone on a line.
	notable = regexp.MustCompile(`https?://[^\s<>"']+|(?m:^[0-9]{8}$)`)
	// ofProxy matches the headers that proxies, caches and load balancers add.
	ofProxy = regexp.MustCompile(`^(X-)?(Forwarded|Original-|Real-|Remote-|Proxy|Via|Surrogate-|Envoy-|Varnish|Amz|Azure-|` +
		`Appengine-|Cloud|Cdn-|Cf-|Fastly-|Fly-)|-Ip$`)
)

// policy lets the page show itself and nothing else: no scripts, no forms, nothing
// from other sites. Inline styles are allowed for the mails, which inherit this
// policy in their frames.
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler shows the newest messages as a page, or as JSON to clients that prefer it.
// It asks for no password, so it only answers requests whose Host header names a
// loopback address or localhost. Otherwise another site in the user's browser could
// read it, by making its own name resolve to this machine. A proxy in front may send
// such a Host for everyone, so its requests are refused unless proxied is set. prefers
// returns the media type that a request prefers, if it is one of these.
func Handler(
	o envelope.Outlet, in *Inbox, prefers func(r *http.Request, types ...string) string, proxied bool,
) http.Handler {
	return o.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if !proxied && viaProxy(r) {
			return fault.New(fault.Forbidden, "the inbox is not shown through a proxy, unless FERRY_INBOX is on")
		}
		if host := hostname(r.Host); host != "localhost" && !net.ParseIP(host).IsLoopback() {
			return fault.New(fault.Forbidden, "the inbox is shown only under this machine's own name, such as localhost")
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return &fault.Fault{Kind: fault.MethodNotAllowed, Detail: "the inbox can only be read", Allow: []string{"GET", "HEAD"}}
		}
		messages, err := in.List(r.Context(), MaxList)
		if err != nil {
			return err
		}
		return show(w, messages, prefers(r, "application/json", "text/html") == "application/json")
	})
}

// viaProxy reports whether a request seems to come from a proxy: it has a proxy's header, or
// uses HTTP/1.0, nginx's default.
func viaProxy(r *http.Request) bool {
	for name := range r.Header {
		if ofProxy.MatchString(name) {
			return true
		}
	}
	return !r.ProtoAtLeast(1, 1)
}

// hostname returns the host in lower case, without port and brackets.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func show(w http.ResponseWriter, messages []Message, asJSON bool) error {
	h := w.Header()
	h.Set("Vary", "Accept")
	h.Set("Cache-Control", "no-store")
	if asJSON {
		return envelope.WriteJSON(w, http.StatusOK, messages)
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	if err := page().Execute(w, messages); err != nil {
		return fmt.Errorf("writing the inbox page: %w", err)
	}
	return nil
}

// piece is a part of a text: a link, a PIN, or neither.
type piece struct {
	Text      string
	Link, PIN bool
}

// Pieces divides the text. Quoted lines have no links.
func (m Message) Pieces() (pieces []piece) {
	for line := range strings.Lines(m.Text) {
		from := 0
		for _, at := range notable.FindAllStringIndex(line, -1) {
			if line[0] == '>' {
				break
			}
			found := strings.TrimRight(line[at[0]:at[1]], ".,;:)")
			link := strings.HasPrefix(found, "http")
			pieces = append(pieces, piece{Text: line[from:at[0]]}, piece{Text: found, Link: link, PIN: !link})
			from = at[0] + len(found)
		}
		pieces = append(pieces, piece{Text: line[from:]})
	}
	return pieces
}

// Framed returns the mail's HTML for a frame; its links open in new pages.
func (m Message) Framed() string { return `<base target="_blank">` + m.HTML }
