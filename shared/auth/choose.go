package auth

import (
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ferry/shared/envelope"
)

// The length of a password, in characters.
const (
	ShortestPassword = 10
	LongestPassword  = 128
)

// common holds, one a line, passwords of ten characters or more that are tried
// first by whoever guesses.
//
//go:embed common.txt
var common string

// CheckPassword returns an Invalid fault for a password that may not be
// chosen: too short, too long, not text, common, or made of the user's name.
func CheckPassword(password, user string) error {
	password = norm.NFC.String(password)
	n := utf8.RuneCountInString(password)
	switch {
	case strings.ContainsRune(password, utf8.RuneError) || strings.ContainsFunc(password, unicode.IsControl):
		return envelope.NewFault(envelope.Invalid, "a password is text without control characters")
	case n < ShortestPassword || n > LongestPassword:
		return envelope.NewFault(envelope.Invalid, "a password has %d to %d characters; this one has %d", ShortestPassword, LongestPassword, n)
	case isCommon(password) || distinct(password) < 4 || madeOf(password, user):
		return envelope.NewFault(envelope.Invalid, "the password is too easy to guess; choose another")
	}
	return nil
}

func isCommon(password string) bool {
	return strings.Contains("\n"+common, "\n"+strings.ToLower(password)+"\n")
}

func distinct(s string) int {
	seen := map[rune]bool{}
	for _, r := range s {
		seen[unicode.ToLower(r)] = true
	}
	return len(seen)
}

// madeOf reports whether a password is the user's name with little around it.
func madeOf(password, user string) bool {
	rest := strings.ReplaceAll(strings.ToLower(password), user, "")
	return len(user) >= 3 && rest != strings.ToLower(password) && utf8.RuneCountInString(rest) < 5
}
