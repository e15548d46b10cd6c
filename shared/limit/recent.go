package limit

import (
	"slices"
	"time"

	"ferry/shared/fault"
	"ferry/shared/table"
)

// Recent keeps the times of recent requests, such as those of a source within an hour. A write
// fails if another request has changed it since it was read, so limits also hold for concurrent
// requests.
type Recent struct {
	V       int64   `json:"v"`
	Version int64   `json:"version"`
	Times   []int64 `json:"times"` // Unix seconds, oldest first
	// Notes has one for each time, which says what the request was for.
	Notes []string `json:"notes,omitempty"`

	key    table.Key
	window time.Duration // in which they count
}

// ReadRecent returns the requests in an item that still count.
func ReadRecent(item table.Item, now time.Time, window time.Duration) (Recent, error) {
	var all Recent
	err := fault.Wrap(item.Decode(&all), "reading requests", table.ErrNotFound)
	r := Recent{Version: all.Version, key: item.Key, window: window}
	for i, at := range all.Times {
		if i < len(all.Notes) && !table.Ended(now, at+int64(window.Seconds()), window) {
			r.Times, r.Notes = append(r.Times, at), append(r.Notes, all.Notes[i])
		}
	}
	return r, err
}

// Wait returns how long another request with this note must wait, if most are allowed: 0 if it
// need not. An empty note matches any.
func (r Recent) Wait(note string, now time.Time, most int) time.Duration {
	for i, at := range slices.Backward(r.Times) {
		if note == "" || r.Notes[i] == note {
			most--
		}
		if most == 0 {
			left := time.Unix(at, 0).Add(r.window).Sub(now)
			return min(left, r.window)
		}
	}
	return 0
}

// Add returns the operation that adds a request now.
func (r Recent) Add(now time.Time, note string) table.Op {
	before := table.Equal("version", r.Version)
	if r.Version == 0 {
		before = table.NotExists()
	}
	r.V, r.Version = table.Format, r.Version+1
	r.Times, r.Notes = append(r.Times, now.Unix()), append(r.Notes, note)
	return table.Put(r.key, r).Expire(now.Add(r.window)).If(before)
}
