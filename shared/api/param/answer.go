package param

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"ferry/shared/notify/texts"
	"ferry/shared/users"
)

// Lang returns the language for a request: its lang parameter, else the user's language,
// else the best of Accept-Language, else the default.
func Lang(r *http.Request, u users.User) string {
	return LangOf(r.URL.Query().Get("lang"), r, u)
}

// LangOf is Lang for a request whose lang parameter is not in the query.
func LangOf(lang string, r *http.Request, u users.User) string {
	tags := []string{lang, u.Lang}
	for _, p := range preferences(r.Header, "Accept-Language") {
		tags = append(tags, p.value)
	}
	for _, tag := range tags {
		if l, ok := texts.Find(tag); ok {
			return l.Lang
		}
	}
	return texts.All()[0].Lang
}

// maxPreferences is how many values of an Accept header are read.
const maxPreferences = 32

type preference struct {
	value   string
	quality float64
}

// preferences returns the values of a header that have qualities (RFC 9110, section
// 12.4.2), best first. Malformed values are ignored.
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
		return cmp.Compare(b.quality, a.quality)
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

// TakesGzip reports whether the client decompresses answers in gzip.
func TakesGzip(r *http.Request) bool {
	return slices.ContainsFunc(preferences(
		r.Header,
		"Accept-Encoding",
	), func(p preference) bool {
		return p.value == "gzip"
	})
}

// Shape is the form of an answer.
type Shape int

// The shapes of an answer.
const (
	AsUsual Shape = iota // what the address gives to a client without a preference
	AsPage
	AsJSON
	AsText
)

// VaryByShape lists the headers that Asked reads, for the header Vary.
const VaryByShape = "Accept, Sec-Fetch-Mode, User-Agent"

// Asked returns the shape of answer that a request asks for. Only a browser that opens an address
// gets a page, because Java and others list text/html too. A client that accepts */* as readily as
// JSON or text, such as axios, has no preference.
func Asked(r *http.Request) Shape {
	all := preferences(r.Header, "Accept")
	names := func(kind string) bool {
		return slices.ContainsFunc(all, func(p preference) bool { return p.value == kind })
	}
	if names("text/html") && isOpened(r.Header) {
		return AsPage
	}
	all = slices.DeleteFunc(all, func(p preference) bool { return p.quality < all[0].quality }) // also for names
	switch {
	case names("*/*"), names("*"): // Java writes the latter
		return AsUsual
	case names("application/json"):
		return AsJSON
	case names("text/plain"):
		return AsText
	}
	return AsUsual
}

// isOpened reports whether a browser sends a request because a person opens an address or submits a
// form. If the browser does not say so, as without https, its name has to do.
func isOpened(h http.Header) bool {
	if mode := h.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.HasPrefix(h.Get("User-Agent"), "Mozilla")
}
