package contact

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

func TestMobileNumbersAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, region, want string
		err                error
	}{
		{"+393401234567", "", "+393401234567", nil},
		{"+39 340 123 4567", "DE", "+393401234567", nil},
		{" 340 123 45 67 ", "IT", "+393401234567", nil},
		{"0039-340.123/4567", "IT", "+393401234567", nil},
		{"393401234567", "IT", "+393401234567", nil},
		{"＋３９３４０１２３４５６７", "", "+393401234567", nil},
		{"+٣٩٣٤٠١٢٣٤٥٦٧", "", "+393401234567", nil},
		{"07400 123456", "GB", "+447400123456", nil},
		{"(0)7400 123456", "GB", "+447400123456", nil},
		{"+44 (0) 7400 123456", "", "+447400123456", nil},
		{"0151 23456789", "DE", "+4915123456789", nil},
		{"(201) 555-0123", "US", "+12015550123", nil},
		{"011 44 7400 123456", "US", "+447400123456", nil},
		{"06 12 34 56 78", "FR", "+33612345678", nil},
		{"+39 06 6982", "", "", ErrMobile},
		{"02 1234567", "IT", "", ErrMobile},
		{"+49 30 123456", "", "", ErrMobile},
		{"+1 800 234 5678", "", "", ErrMobile},
		{"+800 1234 5678", "", "", ErrMobile},
		{"340 123 45 67", "", "", ErrNumber},
		{"3401234567", "XX", "", ErrNumber},
		{"3401234567", "001", "", ErrNumber},
		{"+39 340", "", "", ErrNumber},
		{"+999 340 123 4567", "IT", "", ErrNumber},
		{"+39 340 123 4567 ext. 8", "", "", ErrNumber},
		{"340-FERRY-77", "IT", "", ErrNumber},
		{"tel:+393401234567", "", "", ErrNumber},
		{"39+3401234567", "IT", "", ErrNumber},
		{"++393401234567", "IT", "", ErrNumber},
		{"", "IT", "", ErrNumber},
		{"+", "IT", "", ErrNumber},
		{"+3934012345673401234567340123456734012345673401234567340123456734012345", "", "", ErrNumber},
	} {
		got, err := ParseMobile(c.text, c.region)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q in %q: %q, %v, want %q, %v", c.text, c.region, got, err, c.want, c.err)
		}
	}
}

// library is ParseMobile as the library itself decides.
func library(text, region string) (string, error) {
	n, err := phonenumbers.Parse(text, region)
	if err != nil || !phonenumbers.IsValidNumber(n) {
		return "", ErrNumber
	}
	switch phonenumbers.GetNumberType(n) {
	case phonenumbers.MOBILE, phonenumbers.FIXED_LINE_OR_MOBILE, phonenumbers.PERSONAL_NUMBER:
		return phonenumbers.Format(n, phonenumbers.E164), nil
	}
	return "", ErrMobile
}

func compare(t *testing.T, text, region string) {
	t.Helper()
	want, wantErr := library(text, region)
	got, err := ParseMobile(text, region)
	if got != want || err != wantErr {
		t.Errorf("%q in %q: %q, %v; the library says %q, %v", text, region, got, err, want, wantErr)
	}
	if err != nil {
		return
	}
	n, err := phonenumbers.Parse(got, "")
	if country := phonenumbers.GetRegionCodeForNumber(n); err != nil || CountryOf(got) != country {
		t.Errorf("%q is a number of %q; the library says %q, %v", got, CountryOf(got), country, err)
	}
}

// TestParseMobileAgreesWithTheLibrary takes the library's example of each kind of
// number in each country, in one of the forms in which it is dialled, both unchanged
// and with a digit changed, added or left out.
func TestParseMobileAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	regions := slices.Sorted(maps.Keys(phonenumbers.GetSupportedRegions()))
	for _, region := range regions {
		for kind := phonenumbers.FIXED_LINE; kind <= phonenumbers.VOICEMAIL; kind++ {
			example := phonenumbers.GetExampleNumberForType(region, kind)
			if example == nil {
				continue
			}
			home := region
			if random.IntN(4) == 0 {
				home = regions[random.IntN(len(regions))]
			}
			all := forms(example)
			text := all[random.IntN(len(all))]
			compare(t, text, home)
			compare(t, changed(random, text), home)
		}
	}
}

func TestParseMobileAgreesWithTheLibraryOnCodesWithoutACountry(t *testing.T) {
	t.Parallel()
	for code := range phonenumbers.GetSupportedGlobalNetworkCallingCodes() {
		example := phonenumbers.GetExampleNumberForNonGeoEntity(code)
		if example == nil {
			t.Errorf("no example for %d", code)
			continue
		}
		compare(t, phonenumbers.Format(example, phonenumbers.INTERNATIONAL), "")
	}
}

func forms(n *phonenumbers.PhoneNumber) []string {
	international := phonenumbers.Format(n, phonenumbers.E164)
	return []string{
		international,
		international[1:], // without the plus
		"00" + international[1:],
		phonenumbers.GetNationalSignificantNumber(n),
		digitsOf(phonenumbers.Format(n, phonenumbers.NATIONAL)),
		fmt.Sprintf("0%s", phonenumbers.GetNationalSignificantNumber(n)),
	}
}

func digitsOf(text string) string {
	digits, _, _ := clean(text)
	return digits
}

func changed(random *rand.Rand, text string) string {
	b := []byte(text)
	if len(b) < 4 {
		return text
	}
	digit := byte('0' + random.IntN(10))
	at := 1 + random.IntN(len(b)-1)
	switch random.IntN(3) {
	case 0:
		b[at] = digit
	case 1:
		b = slices.Delete(b, at, at+1)
	default:
		b = slices.Insert(b, at, digit)
	}
	return string(b)
}

func FuzzParseMobileAgreesWithTheLibrary(f *testing.F) {
	f.Add("+393401234567", "IT")
	f.Add("07400123456", "GB")
	f.Add("2684641234", "AG")
	f.Fuzz(func(t *testing.T, text, region string) {
		digits, international, ok := clean(text)
		if !ok || len(region) != 2 {
			return
		}
		if international {
			digits = "+" + digits
		}
		compare(t, digits, region)
	})
}
