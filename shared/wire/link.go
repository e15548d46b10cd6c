package wire

import "time"

// NewLinks sends a file to more people or, without C and M, makes one more link to it.
type NewLinks struct {
	C         Texts  `json:"c,omitempty"`       // mobile numbers
	M         Texts  `json:"m,omitempty"`       // addresses
	Instead   string `json:"instead,omitempty"` // the id of a link whose only recipient was wrong
	I         string `json:"i"`                 // the message to them
	Lang      string `json:"lang"`
	Expires   string `json:"expires"`   // like 12h or 7d, or an RFC 3339 date; empty means as long as the file
	Downloads int64  `json:"downloads"` // how many each link allows; 0 is no limit
	Password  string `json:"password"`
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
