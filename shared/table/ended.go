package table

import (
	"time"
)

// Skew is how far the clocks of two processes may differ. A time further ahead than the longest
// wait plus Skew was stored by a wrong clock, and counts as past.
const Skew = time.Minute

// Ended reports whether a time, stored as Unix seconds, is past, or further ahead than a wait of
// at most life can be.
func Ended(now time.Time, expires int64, life time.Duration) bool {
	left := time.Unix(expires, 0).Sub(now)
	return left <= 0 || left > life+Skew
}
