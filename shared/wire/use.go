package wire

import "time"

// Downloads counts the downloads by one link. Times are zero if there were none.
type Downloads struct {
	Count       int64     `json:"count"`           // complete ones, by people
	About       bool      `json:"about,omitempty"` // Count is an estimate
	First       time.Time `json:"first,omitzero"`
	Last        time.Time `json:"last,omitzero"`
	Previews    int64     `json:"previews"` // by programs that preview links
	LastPreview time.Time `json:"lastPreview,omitzero"`
}

// Notification says what became of the message to one recipient, and of the link
// in it.
type Notification struct {
	ID        string    `json:"id"`
	Channel   string    `json:"channel,omitempty"` // mail or sms
	To        string    `json:"to"`
	State     string    `json:"state,omitempty"` // queued, sending, sent or failed; empty if no longer known
	Created   time.Time `json:"created,omitzero"`
	Tries     int64     `json:"tries"`
	LastError string    `json:"lastError,omitempty"`
	Provider  string    `json:"provider,omitempty"` // the provider's ID for the message
	Sent      time.Time `json:"sent,omitzero"`      // when the provider accepted it
	Delivered time.Time `json:"delivered,omitzero"`
	Failed    time.Time `json:"failed,omitzero"`
	Downloads Downloads `json:"downloads"` // by the recipient's link
}
