package wire

import (
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Delivery says where the files of an upload go, who is told about them, and what limits their links.
type Delivery struct {
	To      string `json:"d"`      // the user whose area the files go to; empty means the caller
	SMS     Texts  `json:"c"`      // mobile numbers; each gets a link of its own
	Mail    Texts  `json:"m"`      // addresses; each gets a link of its own
	Message string `json:"i"`      // sent with the links
	Notify  bool   `json:"notify"` // mail the caller when a person has downloaded a file for the first time
	Lang    string `json:"lang"`   // of the links and the messages
	Limits
}

// Limits limit links, and the files of an upload. The zero Limits set no limit.
type Limits struct {
	// Expires is like 12h or 7d, or an RFC 3339 date. It is when a link ends or, with an upload, when
	// the files leave the user area.
	Expires   string `json:"expires,omitempty"`
	Downloads int64  `json:"downloads,omitempty"` // how many each link allows; 0 is no limit
	Password  string `json:"password,omitempty"`  // of each link
}

// Option is something that a caller may ask of an upload, or of the links that it makes.
type Option struct {
	Name  string // in queries, forms and JSON
	Flag  string // of the command; empty if there is none
	Is    Kinds
	Field any // of a Delivery: a *string, *Texts, *bool or *int64; nil if it has none
}

// Kinds say what options are, and where they may come from.
type Kinds int

// The kinds.
const (
	Limit     Kinds = 1 << iota // without it a link would give more than its sender wants, so it must not be lost
	Secret                      // it must not be in an address
	Guest                       // guests may use it
	Page                        // a page's form without scripts has it, as a field before the files
	GuestPage                   // so does the form for guests
	Script                      // the pages' scripts send and remember it
)

// Options returns all options, with the fields of this Delivery. Whatever takes options in, or passes
// them on, follows this list.
func (d *Delivery) Options() []Option {
	return []Option{
		{"d", "to", Page | Script, &d.To},
		{"c", "sms", Page | Script, &d.SMS},
		{"m", "mail", Page | Script, &d.Mail},
		{"i", "message", Page | Script, &d.Message},
		{"notify", "notify", Page | Script, &d.Notify},
		{"lang", "lang", Guest | Script, &d.Lang},
		{"expires", "expires", Limit | Page | Script, &d.Expires},
		{"downloads", "downloads", Limit | Page | Script, &d.Downloads},
		{"password", "password", Limit | Secret, &d.Password},
		{"bundle", "", Limit | Guest, nil},
		{"by", "by", Guest | GuestPage | Script, nil},
	}
}

// OptionNames returns the names of the options that are of these kinds.
func OptionNames(kinds Kinds) (names []string) {
	for _, o := range new(Delivery).Options() {
		if o.Is&kinds == kinds {
			names = append(names, o.Name)
		}
	}
	return names
}

// Texts returns the option's values as a query has them. There are none if it is not set.
func (o Option) Texts() (texts []string) {
	switch field := o.Field.(type) {
	case *string:
		texts = []string{*field}
	case *Texts:
		texts = slices.Clone(*field)
	case *bool:
		if *field {
			texts = []string{"1"}
		}
	case *int64:
		if *field != 0 {
			texts = []string{strconv.FormatInt(*field, 10)}
		}
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// Query returns what a Delivery asks for as a query. It leaves out secrets.
func (d Delivery) Query() url.Values {
	q := url.Values{}
	for _, o := range d.Options() {
		if texts := o.Texts(); len(texts) > 0 && o.Is&Secret == 0 {
			q[o.Name] = texts
		}
	}
	return q
}

// NewLinks sends a file to more people or, without recipients, makes one more link to it.
type NewLinks struct {
	SMS     Texts  `json:"c,omitempty"`       // mobile numbers
	Mail    Texts  `json:"m,omitempty"`       // addresses
	Instead string `json:"instead,omitempty"` // the id of a link whose only recipient was wrong
	Message string `json:"i"`                 // to the recipients
	Lang    string `json:"lang"`
	Limits
}

// ChangeLink changes a link. A nil field is left unchanged.
type ChangeLink struct {
	Expires   *string `json:"expires,omitempty"`   // empty means as long as the file
	Downloads *int64  `json:"downloads,omitempty"` // 0 removes the limit
	Password  *string `json:"password,omitempty"`  // empty removes it
}

// ChangeFile changes a file. A nil field is left unchanged.
type ChangeFile struct {
	Name    *string `json:"name,omitempty"`
	Expires *string `json:"expires,omitempty"` // empty means as long as the service keeps files
}

// Link is a link to a file, as the file's owner or its uploader sees it.
type Link struct {
	ID        string    `json:"id"` // own for the file's own link
	State     string    `json:"state"`
	LinkURL   string    `json:"linkURL,omitempty"` // unless it is a recipient's
	Channel   string    `json:"channel,omitempty"` // mail or sms
	To        string    `json:"to,omitempty"`      // the recipient
	Expires   time.Time `json:"expires,omitzero"`
	Downloads int64     `json:"downloads,omitempty"` // how many it allows; 0 is no limit
	Left      *int64    `json:"left,omitempty"`      // how many of these are left
	Protected bool      `json:"protected,omitempty"` // by a password
	Used      Downloads `json:"used"`
}

// About is what a page that shows a link needs to know.
type About struct {
	Sender    string    `json:"sender,omitempty"`
	Message   string    `json:"message,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
	Left      *int64    `json:"left,omitempty"` // downloads; missing if there is no limit
	Bundle    bool      `json:"bundle"`
	Entries   int       `json:"entries,omitempty"` // of a bundle
	Protected bool      `json:"protected"`         // by a password
	// A protected link shows the following only with its password or a claim.
	Name      string `json:"name,omitempty"`
	Type      string `json:"type,omitempty"`
	Length    *int64 `json:"length,omitempty"` // bytes
	CRC64NVME string `json:"crc64nvme,omitempty"`
	SHA256    string `json:"sha256,omitempty"` // hexadecimal; missing if it is not known
}
