package contact

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// planText has a line for each country: its code, its region, and its plan in
// JSON. Countries that share a code are in the order in which they are tried.
// TestPlansMatchTheLibrary writes it.
//
//go:embed plans.txt
var planText string

// plan is a country's numbering plan.
type plan struct {
	Code   string `json:"-"`
	Region string `json:"-"`
	// Abroad matches the prefix dialled before another country's code, and Within the prefix
	// dialled before a number in the same country. Instead replaces the latter; it is empty for
	// most countries.
	Abroad  string `json:"abroad,omitempty"`
	Within  string `json:"within,omitempty"`
	Instead string `json:"instead,omitempty"`
	// Begin matches the beginning of the country's numbers, if that is enough to
	// distinguish them from others with the same code.
	Begin string `json:"begin,omitempty"`
	All   desc   `json:"all"`
	Kinds []desc `json:"kinds"` // the first that a number matches decides
}

// desc describes numbers of one kind.
type desc struct {
	Pattern string `json:"pattern"`
	Lengths []int  `json:"lengths,omitempty"`
	Local   []int  `json:"local,omitempty"`  // lengths within an area
	Mobile  bool   `json:"mobile,omitempty"` // they get text messages
}

func (d desc) matches(number string) bool {
	return (len(d.Lengths) == 0 || slices.Contains(d.Lengths, len(number))) && d.fits(number)
}

// fits is like matches, but ignores the length.
func (d desc) fits(number string) bool {
	return regexp.MustCompile("^(?:" + d.Pattern + ")$").MatchString(number)
}

// begin matches a pattern at the beginning of a number.
func begin(pattern string) *regexp.Regexp { return regexp.MustCompile("^(?:" + pattern + ")") }

// tooLong reports whether the number is longer than any of the plan.
func (p plan) tooLong(number string) bool {
	n, lengths := len(number), p.All.Lengths
	return n > lengths[len(lengths)-1] && !slices.Contains(p.All.Local, n)
}

// checkMobile returns the region of a mobile number, ErrMobile for another number, and
// ErrNumber for one that has no plan. Several countries may share its code.
func checkMobile(number string, plans []plan) (region string, err error) {
	for _, p := range plans {
		if p.Begin != "" && len(plans) > 1 {
			if begin(p.Begin).MatchString(number) {
				return p.Region, p.checkMobile(number)
			}
			continue
		}
		if err := p.checkMobile(number); err != ErrNumber {
			return p.Region, err
		}
	}
	return "", ErrNumber
}

func (p plan) checkMobile(number string) error {
	i := slices.IndexFunc(p.Kinds, func(d desc) bool { return d.matches(number) })
	switch {
	case i < 0 || !p.All.matches(number):
		return ErrNumber
	case !p.Kinds[i].Mobile:
		return ErrMobile
	}
	return nil
}

// planOf returns the plan of a region, or one without a code.
func planOf(region string) plan {
	if found := find(func(_, r string) bool { return r == region }); len(found) > 0 &&
		region != world {
		return found[0]
	}
	return plan{}
}

// KnownRegion reports whether a region, such as IT, has a numbering plan.
func KnownRegion(region string) bool { return planOf(region).Code != "" }

// world is the region of codes that belong to no country.
const world = "001"

// plansOf returns the plans of the countries with this code.
func plansOf(code string) []plan { return find(func(c, _ string) bool { return c == code }) }

// find returns the plans that are wanted, and parses no others.
func find(want func(code, region string) bool) []plan {
	var found []plan
	for line := range strings.Lines(planText) {
		code, rest, _ := strings.Cut(line, " ")
		region, text, _ := strings.Cut(rest, " ")
		if code == "#" || !want(code, region) {
			continue
		}
		p := plan{Code: code, Region: region}
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			panic("plans.txt: " + err.Error()) // a test reads each line
		}
		found = append(found, p)
	}
	return found
}
