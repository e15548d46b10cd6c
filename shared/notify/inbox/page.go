package inbox

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/lazy"
)

// notable is what people look for in a message: a link, or a PIN alone on a line.
var notable = lazy.Regexp(`https?://[^\s<>"']+|(?m:^[0-9]{8}$)`)

// Page shows messages to a person. It is given the newest of them.
type Page func(w http.ResponseWriter, r *http.Request, messages []Message) error

// Handler shows the newest messages as a page, or as JSON to clients that prefer it. With a
// message's id in the parameter mail it shows the HTML of that mail alone, for a frame in the page.
// It asks for no password, so it only answers requests whose Host header names a
// loopback address or localhost. Otherwise another site in the user's browser could
// read it, by making its own name resolve to this machine. A proxy in front may send
// such a Host for everyone, so its requests are refused unless proxied is set.
func Handler(
	o envelope.Outlet, in *Inbox, wantsJSON func(*http.Request) bool, page Page, proxied bool,
) http.Handler {
	return o.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if !proxied && envelope.ViaProxy(r) {
			return fault.New(
				fault.Forbidden, "the inbox is not shown through a proxy, unless FERRY_INBOX is on",
			)
		}
		if host := hostname(r.Host); host != "localhost" && !net.ParseIP(host).IsLoopback() {
			return fault.New(
				fault.Forbidden, "the inbox is shown only under this machine's own name, such as localhost",
			)
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return &fault.Fault{
				Kind:   fault.MethodNotAllowed,
				Detail: "the inbox can only be read",
				Allow:  []string{"GET", "HEAD"},
			}
		}
		messages, err := in.List(r.Context(), MaxList)
		if err != nil {
			return err
		}
		w.Header().Set("Vary", "Accept")
		w.Header().Set("Cache-Control", "no-store")
		if wantsJSON(r) {
			return envelope.WriteJSON(w, http.StatusOK, messages)
		}
		if id := r.URL.Query().Get("mail"); id != "" {
			return showMail(w, messages, id)
		}
		return page(w, r, messages)
	})
}

// hostname returns the host in lower case, without port and brackets.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// policy lets a mail show only itself, with its own styles: no scripts, no forms, nothing from
// other sites. Only the inbox may show it in a frame, and even when opened by itself it does not
// count as part of this site.
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; " +
	"sandbox allow-popups allow-popups-to-escape-sandbox"

// showMail shows the HTML of a mail. Its links open in new pages.
func showMail(w http.ResponseWriter, messages []Message, id string) error {
	at := slices.IndexFunc(messages, func(m Message) bool { return m.ID == id && m.HTML != "" })
	if at < 0 {
		return fault.New(fault.NotFound, "there is no such mail in the inbox")
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	return envelope.WriteText(
		w,
		http.StatusOK,
		[]byte(`<base target="_blank">`+messages[at].HTML),
	)
}

// Piece is a part of a text: a link, a PIN, or neither.
type Piece struct {
	Text      string
	Link, PIN bool
}

// Pieces divides the text into its pieces. Links in quoted lines are not recognized.
func (m Message) Pieces() (pieces []Piece) {
	for line := range strings.Lines(m.Text) {
		from := 0
		for _, at := range notable().FindAllStringIndex(line, -1) {
			if line[0] == '>' {
				break
			}
			found := strings.TrimRight(line[at[0]:at[1]], ".,;:)")
			link := strings.HasPrefix(found, "http")
			pieces = append(pieces, Piece{Text: line[from:at[0]]}, Piece{
				Text: found,
				Link: link,
				PIN:  !link,
			})
			from = at[0] + len(found)
		}
		pieces = append(pieces, Piece{Text: line[from:]})
	}
	return pieces
}
