// Package suppressed is the list of e-mail addresses that get no mail: those
// that bounced, and those whose owners want none.
package suppressed

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"ferry/shared/table"
)

// Reason is why an address is on the list.
type Reason string

// The reasons.
const (
	Bounced    Reason = "bounced"    // its server refuses it for good
	Complained Reason = "complained" // its owner called a mail spam
	Stopped    Reason = "stopped"    // its owner used the link that ends notifications
)

// Sentence says what happened, of the address as "it".
func (r Reason) Sentence() string {
	switch r {
	case Bounced:
		return "it bounced"
	case Complained:
		return "its owner called a mail spam"
	}
	return "its owner wants none"
}

const (
	layout = 1
	// shards is over how many partitions the list is spread. All can be read
	// with few calls, and one by its key.
	shards = 8
)

// Entry is one address on the list.
type Entry struct {
	V      int64  `json:"v"`
	To     string `json:"to"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitempty"` // what the provider said
	At     int64  `json:"at"`               // Unix milliseconds
}

// Key is where an address is found.
func Key(address string) table.Key {
	sum := sha256.Sum256([]byte(canonical(address)))
	return table.Key{PK: partition(int(sum[0] % shards)), SK: base64.RawURLEncoding.EncodeToString(sum[:])}
}

func partition(shard int) string { return "suppressed#" + strconv.Itoa(shard) }

// canonical leaves out what no server tells addresses apart by.
func canonical(address string) string { return strings.ToLower(strings.TrimSpace(address)) }

// Add is the operation that puts an address on the list.
func Add(address string, reason Reason, detail string, now time.Time) table.Op {
	return table.Put(Key(address), Entry{layout, canonical(address), reason, detail, now.UnixMilli()})
}

// Get returns an address's entry; ok is false if there is none.
func Get(ctx context.Context, t table.Table, address string) (e Entry, ok bool, err error) {
	err = t.Get(ctx, Key(address), &e)
	switch {
	case errors.Is(err, table.ErrNotFound):
		return e, false, nil
	case err != nil:
		return e, false, fmt.Errorf("looking for a suppressed address: %w", err)
	}
	return e, true, nil
}

// Allow takes an address off the list; was is false if it was not there.
func Allow(ctx context.Context, t table.Table, address string) (was bool, err error) {
	err = t.Write(ctx, table.Delete(Key(address)).If(table.Exists()))
	switch {
	case errors.Is(err, table.ErrCondition):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("allowing an address: %w", err)
	}
	return true, nil
}

// All yields the whole list, in no order: one call to the table for each
// partition, and for each 1000 entries in it.
func All(ctx context.Context, t table.Table) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for shard := range shards {
			if !page(ctx, t, partition(shard), yield) {
				return
			}
		}
	}
}

func page(ctx context.Context, t table.Table, pk string, yield func(Entry, error) bool) (goOn bool) {
	q := table.Query{PK: pk, Limit: table.MaxPage}
	for {
		page, err := t.Query(ctx, q)
		if err != nil {
			yield(Entry{}, fmt.Errorf("reading the suppressed addresses: %w", err))
			return false
		}
		for _, item := range page.Items {
			q.After = item.Key.SK
			var e Entry
			if err := item.Decode(&e); err != nil {
				yield(Entry{}, fmt.Errorf("reading a suppressed address: %w", err))
				return false
			}
			if !yield(e, nil) {
				return false
			}
		}
		if !page.More {
			return true
		}
	}
}
