// Package contact reads telephone numbers and e-mail addresses, as people write them.
// Start reading with ParseMobile and ParseAddress.
package contact

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Bounds of numbers, in digits, and of a number as it is written, in bytes.
const (
	minDigits  = 2
	maxDigits  = 17
	maxCode    = 3
	maxAddress = 64
)

// ParseMobile reads a number as a person of the region (such as IT; may be empty) would write
// it, and returns it in E.164 form.
//
// It decides like github.com/nyaruka/phonenumbers, with the same numbering plans, and
// is tested against it. That package reads the plans of all countries when a program
// starts, which takes longer than the rest of a function's start and doubles its size.
// Here a plan is read when it is needed.
func ParseMobile(text, region string) (string, error) {
	digits, international, ok := clean(text)
	if !ok {
		return "", ErrNumber
	}
	home := planOf(region)
	code, number, ok := home.split(digits, international)
	if !ok {
		return "", ErrNumber
	}
	plans := plansOf(cmp.Or(code, home.Code))
	dialled := plans[0] // the main country, where several share a code
	if code == "" {
		code, dialled = home.Code, home
	}
	number, ok = dialled.national(number)
	if !ok {
		return "", ErrNumber
	}
	if _, err := checkMobile(number, plans); err != nil {
		return "", err
	}
	return "+" + code + number, nil
}

// CountryOf returns the region of a mobile number in E.164 form, such as IT. It is world for a
// number that belongs to no country.
func CountryOf(mobile string) string {
	code, number, _ := country(strings.TrimPrefix(mobile, "+"))
	region, _ := checkMobile(number, plansOf(code))
	return region
}

// clean returns only the digits. international is true if a plus comes first.
func clean(text string) (digits string, international, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) > maxAddress {
		return "", false, false
	}
	for _, c := range text {
		switch digit := digitOf(c); {
		case (c == '+' || c == '＋') && digits == "" && !international:
			international = true
		case digit != "":
			digits += digit
		case !strings.ContainsRune(
			" \u00a0\u200b\u2060-\u2010\u2011\u2012\u2013\u2014\u2212.()/",
			c,
		):
			return "", false, false
		}
	}
	return digits, international, len(digits) > minDigits
}

// digitOf returns the ASCII digit for a digit of any script, or nothing.
func digitOf(c rune) string {
	for _, zero := range "0０٠۰" {
		if c >= zero && c <= zero+9 {
			return strconv.Itoa(int(c - zero))
		}
	}
	return ""
}

// split separates a number from its country code. Without a code, the number is one
// of the plan's country.
func (p plan) split(digits string, international bool) (code, number string, ok bool) {
	if international {
		if code, number, ok := country(digits); ok {
			return code, number, true
		}
	}
	if p.Code == "" {
		return "", "", false
	}
	if rest, ok := p.abroad(digits); ok {
		return country(rest)
	}
	if rest, ok := strings.CutPrefix(digits, p.Code); ok && p.withoutPlus(digits, rest) {
		return p.Code, p.strip(rest), true
	}
	return "", digits, !international
}

// country separates a number from the country code at its beginning. No code is the
// beginning of another.
func country(digits string) (code, number string, ok bool) {
	for n := 1; n <= maxCode && n < len(digits); n++ {
		if len(plansOf(digits[:n])) > 0 {
			return digits[:n], digits[n:], true
		}
	}
	return "", "", false
}

// abroad removes the international dialling prefix, such as 00. No code begins with a zero.
func (p plan) abroad(digits string) (rest string, ok bool) {
	rest = digits[len(begin(p.Abroad).FindString(digits)):]
	return rest, rest != digits && !strings.HasPrefix(rest, "0")
}

// withoutPlus reports whether the digits begin with the country's code, written
// without a plus: then only the rest is a number of the plan.
func (p plan) withoutPlus(digits, rest string) bool {
	return !p.All.fits(digits) && p.All.fits(p.strip(rest)) || p.tooLong(digits)
}

// national removes the prefix that is dialled only within the country, such as a 0 before the
// area code, unless the rest is too short for the plan, or between its lengths.
func (p plan) national(number string) (string, bool) {
	if len(number) < minDigits {
		return "", false
	}
	stripped := p.strip(number)
	if slices.Contains(p.All.Lengths, len(stripped)) || p.tooLong(stripped) {
		number = stripped
	}
	return number, len(number) >= minDigits && len(number) <= maxDigits
}

func (p plan) strip(number string) string {
	if p.Within == "" || number == "" {
		return number
	}
	within := begin(p.Within)
	groups := within.FindStringSubmatchIndex(number)
	if groups == nil {
		return number
	}
	stripped := number[groups[1]:]
	// A plan may say what to put in place of the prefix.
	if last := groups[len(groups)-2]; p.Instead != "" && last >= 0 {
		stripped = within.ReplaceAllString(number, p.Instead)
	}
	if p.All.fits(number) && !p.All.fits(stripped) {
		return number
	}
	return stripped
}

var (
	// ErrNumber is returned for text that is not a telephone number.
	ErrNumber = errors.New("not a telephone number; write it with its country code, such as +393401234567")
	// ErrMobile is returned for a number that cannot get text messages.
	ErrMobile = errors.New("not a mobile number")
)
