package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxPreferences bounds how much of an Accept header is looked at.
const maxPreferences = 32

type preference struct {
	value   string
	quality float64
}

// preferences reads a header of values with qualities (RFC 9110, section
// 12.4.2), best first. What cannot be read is passed over.
func preferences(h http.Header, name string) []preference {
	var all []preference
	for part := range strings.SplitSeq(strings.Join(h.Values(name), ","), ",") {
		value, params, _ := strings.Cut(strings.ToLower(part), ";")
		p := preference{strings.TrimSpace(value), quality(params)}
		if p.value != "" && p.quality > 0 {
			all = append(all, p)
		}
		if len(all) == maxPreferences {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b preference) int {
		switch {
		case a.quality > b.quality:
			return -1
		case a.quality < b.quality:
			return 1
		}
		return 0
	})
	return all
}

func quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		if q, ok := strings.CutPrefix(strings.TrimSpace(param), "q="); ok {
			if f, err := strconv.ParseFloat(q, 64); err == nil && f <= 1 {
				return f
			}
		}
	}
	return 1
}

// Prefers returns which of the media types the client's Accept header names
// first, "" if it names another one, or none, or anything first.
func Prefers(r *http.Request, types ...string) string {
	all := preferences(r.Header, "Accept")
	if len(all) > 0 && slices.Contains(types, all[0].value) {
		return all[0].value
	}
	return ""
}
