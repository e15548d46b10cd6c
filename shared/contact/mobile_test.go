package contact

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

func TestMobileNumbersAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for want, all := range map[string][][2]string{ // as it is written, and the region
		"+393401234567": {
			{"+39 340 123 4567", "DE"}, {" 340 123 45 67 ", "IT"}, {"0039-340.123/4567", "IT"}, {"393401234567", "IT"},
			{"＋３９３４０１２３４５６７", ""}, {"+٣٩٣٤٠١٢٣٤٥٦٧", ""},
		},
		"+447400123456": {{"(0)7400 123456", "GB"}, {"+44 (0) 7400 123456", ""}, {"011 44 7400 123456", "US"}},
	} {
		for _, c := range all {
			if got, err := ParseMobile(c[0], c[1]); got != want || err != nil {
				t.Errorf("%q in %q: %q, %v, want %q", c[0], c[1], got, err, want)
			}
		}
	}
	for want, all := range map[error][][2]string{
		ErrMobile: {{"02 1234567", "IT"}, {"+49 30 123456", ""}, {"+800 1234 5678", ""}},
		ErrNumber: {
			{"340 123 45 67", ""}, {"3401234567", "XX"}, {"3401234567", "001"}, {"+39 340", ""}, {"+999 340 123 4567", "IT"},
			{"+39 340 123 4567 ext. 8", ""}, {"340-FERRY-77", "IT"}, {"tel:+393401234567", ""}, {"39+3401234567", "IT"},
			{"++393401234567", "IT"}, {"", "IT"}, {"+", "IT"}, {"+" + strings.Repeat("3401234567", 7), ""},
		},
	} {
		for _, c := range all {
			if got, err := ParseMobile(c[0], c[1]); got != "" || err != want {
				t.Errorf("%q in %q: %q, %v, want %v", c[0], c[1], got, err, want)
			}
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
	international, national := phonenumbers.Format(n, phonenumbers.E164), phonenumbers.GetNationalSignificantNumber(n)
	dialled, _, _ := clean(phonenumbers.Format(n, phonenumbers.NATIONAL))
	withoutPlus := international[1:]
	return []string{international, withoutPlus, "00" + withoutPlus, national, dialled, "0" + national}
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
