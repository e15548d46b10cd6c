package contact

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

func updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write plans.txt again")
	flag.Parse()
	os.Exit(m.Run())
}

const heading = `# The numbering plans of the world, from Google's libphonenumber (https://github.com/google/libphonenumber,
# Apache License 2.0) by way of github.com/nyaruka/phonenumbers; no comments but these lines.
# Written by: go test ./shared/contact -run Plans -update
`

// TestPlansMatchTheLibrary fails when a newer version of the library has
// newer plans.
func TestPlansMatchTheLibrary(t *testing.T) {
	want := heading + generate(t)
	if updating() {
		if err := os.WriteFile("plans.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if planText != want {
		t.Error("plans.txt is out of date: go test ./shared/contact -run Plans -update")
	}
}

func TestEachPlanCanBeRead(t *testing.T) {
	t.Parallel()
	all := find(func(string, string) bool { return true })
	if len(all) < 240 {
		t.Errorf("%d plans", len(all))
	}
	for _, p := range all {
		if len(p.All.Lengths) == 0 || !slices.IsSorted(p.All.Lengths) || p.All.Pattern == "" {
			t.Errorf("%s: %+v", p.Code, p.All)
		}
	}
}

func generate(t *testing.T) string {
	t.Helper()
	collection, err := phonenumbers.MetadataCollection()
	if err != nil {
		t.Fatal(err)
	}
	byRegion := map[string]*phonenumbers.PhoneMetadata{}
	for _, m := range collection.GetMetadata() {
		byRegion[regionKey(m.GetId(), int(m.GetCountryCode()))] = m
	}
	var codes []int
	for code := range phonenumbers.GetSupportedCallingCodes() {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	var b strings.Builder
	for _, code := range codes {
		for _, region := range phonenumbers.GetRegionCodesForCountryCode(code) {
			text, err := json.Marshal(convert(byRegion[regionKey(region, code)]))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%d %s %s\n", code, region, plainHTML(string(text)))
		}
	}
	return b.String()
}

// plainHTML undoes what encoding/json escapes because of HTML.
func plainHTML(text string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(text)
}

func regionKey(region string, code int) string {
	if region == world {
		return region + strconv.Itoa(code)
	}
	return region
}

func convert(m *phonenumbers.PhoneMetadata) plan {
	p := plan{
		Abroad: m.GetInternationalPrefix(), Within: m.GetNationalPrefixForParsing(), Instead: m.GetNationalPrefixTransformRule(),
		Begin: m.GetLeadingDigits(), All: description(m.GetGeneralDesc()),
	}
	for _, n := range m.GetGeneralDesc().GetPossibleLengthLocalOnly() {
		p.All.Local = append(p.All.Local, int(n))
	}
	add := func(mobile bool, all ...*phonenumbers.PhoneNumberDesc) {
		for _, d := range all {
			if text := d.GetNationalNumberPattern(); text == "" || text == "NA" { // no such numbers
				continue
			}
			kind := description(d)
			kind.Mobile = mobile
			p.Kinds = append(p.Kinds, kind)
		}
	}
	add(false, m.GetPremiumRate(), m.GetTollFree(), m.GetSharedCost(), m.GetVoip())
	add(true, m.GetPersonalNumber())
	add(false, m.GetPager(), m.GetUan(), m.GetVoicemail())
	if !m.GetSameMobileAndFixedLinePattern() {
		add(true, m.GetMobile())
	}
	add(m.GetSameMobileAndFixedLinePattern(), m.GetFixedLine())
	return p
}

func description(d *phonenumbers.PhoneNumberDesc) desc {
	c := desc{Pattern: d.GetNationalNumberPattern()}
	for _, n := range d.GetPossibleLength() {
		c.Lengths = append(c.Lengths, int(n))
	}
	return c
}
