package auth

import (
	"time"

	"ferry/shared/envelope"
	"ferry/shared/table"
)

// requests remembers when a user's forget requests of the last day came. It is
// written back only as it was read, so that the limits hold for many at once.
type requests struct {
	V       int64   `json:"v"`
	Version int64   `json:"version"`
	Times   []int64 `json:"times"` // Unix seconds, oldest first, at most maxPerDay
}

func requestsKey(name string) table.Key {
	return table.Key{PK: "user#" + name, SK: "forget"}
}

// next returns the operation that adds a request now, or a TooMany fault.
func (r requests) next(name string, found bool, now time.Time) (table.Op, error) {
	day := after(r.Times, now.Add(-24*time.Hour))
	hour := after(day, now.Add(-time.Hour))
	switch {
	case len(day) >= maxPerDay:
		return table.Op{}, tooMany(day[len(day)-maxPerDay], 24*time.Hour, now)
	case len(hour) >= maxPerHour:
		return table.Op{}, tooMany(hour[len(hour)-maxPerHour], time.Hour, now)
	}
	put := table.Put(requestsKey(name), requests{
		V: changeLayout, Version: r.Version + 1, Times: append(day[:len(day):len(day)], now.Unix()),
	}).Expire(now.Add(24 * time.Hour))
	if !found {
		return put.If(table.NotExists()), nil
	}
	return put.If(table.Equal("version", r.Version)), nil
}

func tooMany(oldest int64, window time.Duration, now time.Time) error {
	return envelope.WaitFault(time.Unix(oldest, 0).Add(window).Sub(now),
		"at most %d requests an hour and %d a day for a user", maxPerHour, maxPerDay)
}

// after returns the times later than t.
func after(times []int64, t time.Time) []int64 {
	for i, at := range times {
		if at > t.Unix() {
			return times[i:]
		}
	}
	return nil
}
