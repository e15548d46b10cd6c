package notify

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxError is the most bytes of an error's text that is stored.
const maxError = 300

var (
	urls      = regexp.MustCompile(`(?i)https?://\S+`)
	numbers   = regexp.MustCompile(`\+?[0-9]{7,}`) // of phones, and PINs
	addresses = regexp.MustCompile(`[^\s<>"',;:()]+@[^\s<>"',;:()]+`)
)

// scrubbed is an error whose text is safe to log: providers quote what they refuse.
type scrubbed struct {
	text  string
	cause error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.cause }

// scrub takes out of err's text what a log may not show.
func (s *Sender) scrub(n Notice, err error) error {
	if err == nil {
		return nil
	}
	text := strings.ReplaceAll(err.Error(), s.Key.Recipient(n.Area, n.Owner, n.File, n.ID), "[token]")
	return &scrubbed{scrubText(text), err}
}

func scrubText(text string) string {
	text = oneLine(text)
	text = urls.ReplaceAllString(text, "[link]")
	text = numbers.ReplaceAllString(text, "[number]")
	return addresses.ReplaceAllStringFunc(text, Mask)
}

// brief is err's text as it is stored.
func brief(err error) string {
	text := err.Error()
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "")
	}
	return text
}

// Mask keeps just enough of an address or number to recognise it.
func Mask(to string) string {
	local, domain, isMail := strings.Cut(to, "@")
	if isMail {
		_, first := utf8.DecodeRuneInString(local)
		return local[:first] + "***@" + domain
	}
	if len(to) <= 5 {
		return "***"
	}
	return to[:3] + "***" + to[len(to)-2:]
}
