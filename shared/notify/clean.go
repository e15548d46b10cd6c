package notify

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/bidi"

	"ferry/shared/contact"
	"ferry/shared/lazy"
	"ferry/shared/notify/mail"
)

// maxText is the maximum length of a user's text in a message, in characters. Texts are limited
// before they are stored; this is a last safeguard.
const maxText = 2000

// oneLine makes a user's text fit for one line: white space and control
// characters become single spaces.
func oneLine(s string) string {
	return mail.OneLine(contact.Visible(truncate(s)))
}

// quote splits a user's text at everything that a mail program may show as a line break, and
// makes each line safe to show. An empty text has no lines.
func quote(s string) []string {
	s = strings.NewReplacer(
		"\r\n",
		"\n",
		"\r",
		"\n",
		"\v",
		"\n",
		"\f",
		"\n",
		"\u0085",
		"\n",
		"\u2028",
		"\n",
		"\u2029",
		"\n",
	).
		Replace(truncate(s))
	s = strings.TrimSpace(s)
	if s == "" {
		return nil
	}
	all := strings.Split(s, "\n")
	for i, line := range all {
		all[i] = unlinked(oneLine(line))
	}
	return all
}

// unquoted returns one line without anything that is, or looks like, a quotation
// mark, so that the text cannot end its quotation.
func unquoted(s string) string { return replaceAny(oneLine(s), "\"“”„‟«»″＂", '\'') }

// replaceAny replaces each of the characters in old.
func replaceAny(s, old string, with rune) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(old, r) {
			return with
		}
		return r
	}, s)
}

// isolated keeps right-to-left text from reordering the text around it.
func isolated(s string) string {
	const first, pop = "\u2068", "\u2069" // first strong isolate, pop directional isolate
	for _, r := range s {
		p, _ := bidi.LookupString(string(r))
		if c := p.Class(); c == bidi.R || c == bidi.AL {
			return first + s + pop
		}
	}
	return s
}

func truncate(s string) string {
	runes := []rune(strings.ToValidUTF8(s, "\ufffd"))
	return string(runes[:min(len(runes), maxText)])
}

// shorten cuts the middle out of a name longer than longest characters, and keeps its end with the
// extension. Accents and joiners at the cut are dropped.
func shorten(name string, longest int) string { return cut(name, longest, min(longest/3, 10)) }

// cut shortens a text, but keeps its last tail characters. Only file names need a tail.
func cut(text string, longest, tail int) string {
	runes := []rune(text)
	if len(runes) <= longest {
		return text
	}
	const gap = "..." // the ellipsis is not in the GSM alphabet
	head := max(longest-tail-len(gap), 0)
	return strings.TrimRightFunc(string(runes[:head]), joins) + gap + strings.TrimLeftFunc(
		string(runes[len(runes)-tail:]),
		joins,
	)
}

func joins(r rune) bool { return unicode.In(r, unicode.M, unicode.Join_Control, unicode.Sk) }

// unlinked marks the places where a mail program or a phone would otherwise turn a user's text into
// a link: before the dot of "evil.com" and the colon of "https://host". In HTML a mark becomes an
// element that nobody sees, and in plain text a space. Both end an address in all of these
// programs. Invisible characters do not, and spam filters look for them.
func unlinked(s string) string {
	var b strings.Builder
	for i, r := range s {
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		if i > 0 && !unicode.IsSpace(before) && linksOn(s[:i], before, s[i:]) {
			b.WriteString(mark)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// mark stands where an address must be interrupted. It is never part of a user's text.
const mark = "\x00"

// spaced returns a text with a space at each mark.
func spaced(s string) string { return strings.ReplaceAll(s, mark, " ") }

// linksOn reports whether an address may continue from one text into the next.
func linksOn(text string, before rune, rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	switch r {
	case ':':
		return strings.HasPrefix(rest, "://")
	case '\\':
		return before == '\\' // a share on a Windows server
	case '@', '\uff20', '\ufe6b':
		return strings.IndexFunc(rest[size:], contact.IsWord) == 0
	}
	return strings.ContainsRune(dots, r) && isDomain(plainDots(text), r, plainDots(rest[size:]))
}

// dots are what a program may read as the dot of a domain. The last ones also end
// sentences in Chinese and Japanese.
const (
	dots            = ".\uff0e\u2024\ufe52" + ideographicDots
	ideographicDots = "\u3002\uff61\ufe12"
)

// longestForeign is the length of the longest top-level domain in these scripts, in characters.
const longestForeign = 6

func plainDots(s string) string { return replaceAny(s, dots, '.') }

// isDomain reports whether a dot between two texts may be part of a domain. Other dots in the texts
// must already be plain.
func isDomain(left string, dot rune, right string) bool {
	left = left[strings.LastIndexFunc(left, isNoDomain)+1:]
	if i := strings.IndexFunc(right, isNoDomain); i >= 0 {
		right = right[:i]
	}
	if left == "" || strings.HasSuffix(left, ".") {
		return false // an ellipsis, or a hidden file
	}
	if host, _, _ := strings.Cut(left, "."); strings.EqualFold(host, "www") {
		return right != ""
	}
	if ip, err := netip.ParseAddr(strings.Trim(left+"."+right, ".")); err == nil && ip.Is4() {
		return true
	}
	if i := strings.IndexAny(right, "._"); i >= 0 {
		right = right[:i]
	}
	if first, _ := utf8.DecodeRuneInString(right); strings.ContainsRune(ideographicDots, dot) &&
		isForeign(first) && utf8.RuneCountInString(right) > longestForeign {
		return false // a sentence
	}
	return mayEndDomain(right)
}

func isNoDomain(r rune) bool { return !contact.IsWord(r) && r != '-' && r != '_' && r != '.' }

// mayEndDomain reports whether a label is, or begins like, a top-level domain.
func mayEndDomain(label string) bool {
	label = strings.ToLower(label)
	if first, _, found := strings.Cut(label, "-"); found && first != "xn" {
		return mayEndDomain(first)
	}
	if strings.ContainsFunc(label, isForeign) || strings.HasPrefix(label, "vermögensberat") {
		return true // nearly all domains with letters outside ASCII are in other scripts
	}
	_, known := publicsuffix.PublicSuffix("x." + label)
	return known
}

func isForeign(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) }

// maxError is how much of an error's text is stored, in bytes.
const maxError = 300

var (
	urls      = lazy.Regexp(`(?i)https?://\S+`)
	numbers   = lazy.Regexp(`\+?[0-9]{7,}`) // phone numbers and PINs
	addresses = lazy.Regexp(`[^\s<>"',;:()]+@[^\s<>"',;:()]+`)
)

// scrubbed is an error whose text is safe to log: providers quote what they refuse.
type scrubbed struct {
	text  string
	cause error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.cause }

// scrub removes from err's text what a log must not show.
func (s *Sender) scrub(n Notice, err error) error {
	if err == nil {
		return nil
	}
	link := s.Key.Of(n.key).Recipient(n.Area, n.Owner, n.File, n.ID)
	tokens := strings.NewReplacer(link, "[token]", s.Key.Change(n.Nonce), "[token]")
	return &scrubbed{scrubText(tokens.Replace(err.Error())), err}
}

func scrubText(text string) string {
	text = oneLine(text)
	text = urls().ReplaceAllString(text, "[link]")
	text = numbers().ReplaceAllString(text, "[number]")
	return addresses().ReplaceAllStringFunc(text, Mask)
}

// brief returns err's text, cut to maxError bytes.
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
