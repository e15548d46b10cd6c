package notify

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"
)

// unlinked puts a space where a mail program or a phone would begin to take a
// user's text for an address, and make a link of it: "evil .com",
// "https ://host". A space ends an address for every one of them; characters
// that nobody sees would not, and spam filters look for them. The text stays
// readable, but nobody gets there with one tap.
func unlinked(s string) string {
	var b strings.Builder
	for i, r := range s {
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		if i > 0 && !unicode.IsSpace(before) && linksOn(s[:i], before, s[i:]) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// linksOn reports whether an address goes on from one text to the next.
func linksOn(text string, before rune, rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	switch r {
	case ':':
		return strings.HasPrefix(rest, "://")
	case '\\':
		return before == '\\' // a share on a Windows server
	case '@', '\uff20', '\ufe6b':
		return strings.IndexFunc(rest[size:], isWord) == 0
	case '.', '\uff0e', '\u2024':
		return isDomain(text, rest[size:])
	}
	return false
}

// isDomain reports whether a dot between two texts may be one of a domain.
func isDomain(left, right string) bool {
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
	return mayEndDomain(right)
}

func isNoDomain(r rune) bool { return !isWord(r) && r != '-' && r != '_' && r != '.' }

func isWord(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }

// mayEndDomain reports whether a label is, or begins like, a top-level domain.
func mayEndDomain(label string) bool {
	label = strings.ToLower(label)
	if first, _, found := strings.Cut(label, "-"); found && first != "xn" {
		return mayEndDomain(first)
	}
	if strings.ContainsFunc(label, isForeign) || strings.HasPrefix(label, "vermögensberat") {
		return true // all but two of the domains with other letters than ours are in other scripts
	}
	_, known := publicsuffix.PublicSuffix("x." + label)
	return known
}

func isForeign(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) }
