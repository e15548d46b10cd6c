package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ferry/shared/blob"
	"ferry/shared/contact"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/wire"
)

// sendPage is what the sending page and the page of a request show. Their scripts send files in
// sessions; without scripts, a plain form sends them.
type sendPage struct {
	Account wire.Account // of the user
	Guest   *guestPage   // for a guest; nil for a user
	Keep    int64        // for how many days files stay; 0 means for ever
	Email   bool         // the user can get mails
	Mobiles bool         // numbers get text messages
	Region  bool         // numbers need no country code
	MaxBody int64        // the most bytes that a plain form may have; 0 means no limit
	// Wrong says what was wrong with the plain form, by parameter. The empty parameter is the form as a whole.
	Wrong map[string]string
}

// send shows the sending page, what was sent, or to visitors without a login what this is.
func (v *visit) send() error {
	err := v.findLogin()
	q := v.r.URL.Query()
	switch {
	case fault.Is(err, fault.Unauthorized):
		return v.show(http.StatusOK, "intro", q.Has("failed"))
	case err != nil:
		return err
	case q.Has("sent"):
		return v.sent(q)
	}
	p := v.sender()
	p.Keep = cmp.Or(v.who.KeepDays, v.ports.Retention.KeepDays)
	p.Email = v.who.Email != ""
	p.Mobiles = v.ports.Sends(files.SMS)
	p.Region = v.ports.PhoneRegion != ""
	if _, err := v.ask(question{at: "GET /me"}, &p.Account); err != nil {
		return err
	}
	return v.show(http.StatusOK, "send", p)
}

// sender returns what the pages that send have in common.
func (v *visit) sender() sendPage {
	v.addStore(blob.Files)
	p := sendPage{MaxBody: v.ports.MaxBody}
	q := v.r.URL.Query()
	if status, err := strconv.Atoi(q.Get("failed")); err == nil {
		parameter, _, several := strings.Cut(q.Get("parameter"), ",")
		if several {
			parameter = "many"
		}
		p.Wrong = map[string]string{
			parameter: v.first(
				"send.js.wrong."+parameter,
				"send.js.wrong."+strconv.Itoa(status),
			),
		}
	}
	return p
}

// About returns what is wrong with one of these parameters, or empty.
func (p sendPage) About(parameters ...string) string {
	for _, name := range parameters {
		if p.Wrong[name] != "" {
			return p.Wrong[name]
		}
	}
	return ""
}

// Whole returns what is wrong with the form as a whole, or with a parameter that none of these fields shows.
func (p sendPage) Whole(fields ...string) string {
	for name, wrong := range p.Wrong {
		if !slices.Contains(fields, name) || name == "c" && !p.Mobiles {
			return wrong
		}
	}
	return ""
}

// Most returns the maximum number of recipients.
func (sendPage) Most() int { return files.MaxRecipients }

// Options returns the names of the options that the page's script sends and remembers, besides the
// password. That it sends a bundle follows from what was chosen.
func (sendPage) Options() string {
	return strings.Join(wire.OptionNames(wire.Script), " ")
}

// Scope names whose unfinished uploads a browser may show.
func (p sendPage) Scope() string {
	if p.Guest != nil {
		return ""
	}
	return "user:" + p.Account.Name
}

// Room returns how many bytes may be sent; nil means any number.
func (p sendPage) Room() *int64 {
	switch {
	case p.Guest != nil:
		return p.Guest.About.BytesLeft
	case p.Account.Quota == nil:
		return nil
	}
	left := max(0, p.Account.Quota.Limit-p.Account.Quota.Used)
	return &left
}

// term is a choice of how long files stay: what the form sends, and what the page says. The one that sends
// nothing is chosen at first.
type term struct{ Value, Say, Text string }

// Lasting returns the choices of how long files stay. The last is as long as files may stay here.
func (p page) Lasting(s sendPage) (terms []term) {
	for _, n := range []int64{1, 7, 14, 30, 90} {
		if n < s.Keep || s.Keep == 0 {
			terms = append(terms, p.term(n))
		}
	}
	if s.Keep == 0 {
		return append(terms, term{"", p.T("send.expires-never"), p.T("send.never")})
	}
	last := p.term(s.Keep)
	last.Value = ""
	return append(terms, last)
}

func (p page) term(days int64) term {
	span := p.N("time.days", days)
	return term{
		strconv.FormatInt(days, 10) + "d", p.T("send.expires-in", span), p.T("send.in", span),
	}
}

// sentFile is a file that was sent.
type sentFile struct {
	stored
	Owner string `json:"-"` // if that is another user
}

// Own returns the file's own link.
func (f sentFile) Own() wire.Link {
	if len(f.Links) == 0 {
		return wire.Link{}
	}
	return f.Links[0]
}

// sent shows what has just been sent, with its links.
func (v *visit) sent(q url.Values) error {
	var all []sentFile
	for _, id := range q["sent"][:min(len(q["sent"]), files.MaxFiles)] {
		at := "GET /files/" + url.PathEscape(id)
		if q.Has("d") {
			at += "?d=" + url.QueryEscape(q.Get("d"))
		}
		f := sentFile{Owner: q.Get("d")}
		if _, err := v.ask(question{at: at}, &f); err != nil {
			return err
		}
		all = append(all, f)
	}
	return v.show(http.StatusOK, "sent", all)
}

// People returns how many people were sent a message.
func (f sentFile) People() int64 { return int64(len(f.Notifications)) }

// Reached returns how many of these messages a provider has accepted.
func (f sentFile) Reached() (n int64) {
	for _, m := range f.Notifications {
		if m.State == string(notify.Sent) {
			n++
		}
	}
	return n
}

// Waits reports whether the state of a message may still change.
func (f sentFile) Waits() bool {
	return slices.ContainsFunc(f.Notifications, func(n wire.Notification) bool {
		return n.State != string(notify.Failed) && n.Delivered.IsZero()
	})
}

// Here returns the address of the page that shows what was sent.
func (p page) Here() string {
	q := url.Values{}
	for _, f := range p.Data.([]sentFile) {
		q.Add("sent", strconv.FormatInt(f.ID, 10))
	}
	return "send?" + q.Encode()
}

// SendModules returns the scripts that a sending page needs besides its own. Those that its button
// needs come first, because a browser may load only six at once.
func (page) SendModules() []string {
	return []string{
		"choice.js", "dom.js", "drop.js", "form.js", "people.js", "place.js", "progress.js", "rows.js", "service.js",
		"store.js", "texts.js", "unfinished.js", "values.js", "words.js",
		"upload.js", "session.js", "transfer.js", "transport.js", "queue.js", "meter.js", "retry.js",
		"bundle.js", "crc.js", "worker.js",
	}
}

// CallModules returns the scripts for forms that call the API.
func (page) CallModules() []string {
	return []string{"dom.js", "fields.js", "people.js", "service.js", "words.js"}
}

// Channel returns the icon of a message's channel.
func (page) Channel(channel string) string {
	if files.Channel(channel) == files.SMS {
		return "phone"
	}
	return "mail"
}

// Readable returns an address in a form for people.
func (page) Readable(address string) string { return contact.Readable(address) }

// Message returns what became of a message to a recipient.
func (page) Message(n wire.Notification) outcome {
	return outcome{became(links.Live, n.To, 0, n, 0), 0}
}
