package auth_test

import (
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/fault"
)

func TestAllowedPasswords(t *testing.T) {
	t.Parallel()
	for what, password := range map[string]string{
		"ten characters":                    "ab cd ef g",
		"ten characters of many bytes":      "пароль мой",
		"128 characters":                    strings.Repeat("abcd", 32),
		"128 characters of four bytes":      strings.Repeat("🎉🎈🎁🎂", 32),
		"128 characters in decomposed form": strings.Repeat("a\u0308o\u0308u\u0308e\u0308", 32),
		"any script":                        "漢字とかなの合言葉です",
		"a phrase":                          "seven bicycles under a lemon",
		"the user's name and more":          "alice in wonderland",
	} {
		if err := auth.CheckPassword(password, "alice"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRefusedPasswords(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ password, says string }{
		"nothing":                            {"", "10 to 128 characters; this one has 0"},
		"nine characters":                    {"ab cd ef ", "this one has 9"},
		"nine characters of many bytes":      {"пароль мо", "this one has 9"},
		"nine characters in decomposed form": {"a\u0308bcdefghi", "this one has 9"},
		"129 characters":                     {strings.Repeat("abc", 43), "this one has 129"},
		"a line end":                         {"ab cd ef g\n", "control"},
		"not UTF-8":                          {"ab cd ef g\xff", "text"},
		"a common one":                       {"1234567890", "easy to guess"},
		"a common one in upper case":         {"QWERTYUIOP", "easy to guess"},
		"three characters over and over":     {"abcabcabcabcabc", "easy to guess"},
		"the user's name twice":              {"alicealice", "easy to guess"},
		"the user's name and little more":    {"Alice-alice1", "easy to guess"},
	} {
		err := auth.CheckPassword(c.password, "alice")
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Of(err).Detail, c.says) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
	}
}
