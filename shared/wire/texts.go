package wire

import (
	"encoding/json"
	"errors"
	"strings"
)

// Prefix is the beginning of every path except those of pages.
const Prefix = "/v1"

// LostBytes begins what the service says about a file whose bytes it has lost. The id of
// the request follows.
const LostBytes = "the service has lost the bytes of this file; tell its operator the request id "

// NoLink is what the service says about a link that never existed, such as a mistyped one.
const NoLink = "there is no such link: check that its address is complete"

// Texts is a field that may have several values. In JSON, one text is a string, none is "", and
// several are an array.
type Texts []string

// MarshalJSON implements json.Marshaler.
func (t Texts) MarshalJSON() ([]byte, error) {
	if len(t) < 2 {
		return json.Marshal(strings.Join(t, ""))
	}
	return json.Marshal([]string(t))
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Texts) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = Texts{one}
		return nil
	}
	var several []*string
	if err := json.Unmarshal(text, &several); err != nil {
		return err
	}
	*t = nil
	for _, one := range several {
		if one == nil {
			return errors.New("a text cannot be null")
		}
		*t = append(*t, *one)
	}
	return nil
}
