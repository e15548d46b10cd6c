package param

import (
	"strconv"
	"strings"
	"time"

	"ferry/shared/fault"
)

// When reads a parameter that is a time from now, such as 90s, 12h, 7d or 2w, or an RFC 3339 date. It
// must be in the future. It returns Unix seconds; an empty text gives 0.
func When(name, text string, now time.Time) (int64, error) {
	if text == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, strings.ReplaceAll(text, " ", "+")) // in a query + is a space
	if err != nil {
		at, err = later(text, now)
	}
	switch {
	case err != nil:
		return 0, fault.Parameter(name,
			"the parameter %s must be like 90s, 45m, 12h, 7d or 2w, or a date like 2030-01-31T12:00:00Z", name)
	case !at.After(now):
		return 0, fault.Parameter(name, "the parameter %s must be in the future", name)
	case at.After(now.Add(maxExpires)):
		return 0, fault.Parameter(name, "the parameter %s must be at most 100 years away", name)
	}
	return at.Unix(), nil
}

// Time returns the time of Unix seconds, in UTC; 0 is the zero Time.
func Time(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}

// maxExpires is the longest time from now, far longer than anything is kept.
const maxExpires = 100 * 365 * 24 * time.Hour

func later(text string, now time.Time) (time.Time, error) {
	units := map[byte]time.Duration{
		's': time.Second,
		'm': time.Minute,
		'h': time.Hour,
		'd': 24 * time.Hour,
		'w': 7 * 24 * time.Hour,
	}
	unit := units[text[len(text)-1]]
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 63)
	if err != nil || unit == 0 || n > uint64(maxExpires/unit) {
		return now, strconv.ErrSyntax
	}
	return now.Add(time.Duration(n) * unit), nil
}
