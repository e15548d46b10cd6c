package notify

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"ferry/shared/contact"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// SuppressReason is why an address gets no mail.
type SuppressReason string

// The reasons.
const (
	AddressBounced    SuppressReason = "bounced"    // its server refuses it permanently
	AddressComplained SuppressReason = "complained" // its owner reported a mail as spam
	AddressStopped    SuppressReason = "stopped"    // its owner used the link that stops mails
)

// sentence says what happened; "it" is the address.
func (r SuppressReason) sentence() string {
	return map[SuppressReason]string{
		AddressBounced:    "it bounced",
		AddressComplained: "its owner called a mail spam",
		AddressStopped:    "its owner wants none",
	}[r]
}

const (
	suppressedFormat = 2
	suppressedPrefix = "suppressed#"
	// attempts is how often a change is tried if others change the entry meanwhile.
	attempts = 5
)

// Suppression is an address on the list of those that get no mail. The provider's reason and the
// owner's opt-out are independent of each other.
type Suppression struct {
	V         int64          `json:"v"`
	To        string         `json:"to"`
	Refused   SuppressReason `json:"refused,omitempty"`   // AddressBounced, AddressComplained, or empty
	Detail    string         `json:"detail,omitempty"`    // what the provider said
	RefusedAt int64          `json:"refusedAt,omitempty"` // Unix milliseconds
	Stopped   int64          `json:"stopped,omitempty"`   // when its owner opted out, in Unix milliseconds, or 0
}

// SuppressCause is one of the reasons why an address gets no mail.
type SuppressCause struct {
	Reason SuppressReason
	Detail string
	At     int64 // Unix milliseconds
}

// Causes returns all reasons, the provider's first; none if the address gets mail.
func (e Suppression) Causes() []SuppressCause {
	var all []SuppressCause
	if e.Refused != "" {
		all = append(all, SuppressCause{e.Refused, e.Detail, e.RefusedAt})
	}
	if e.Stopped != 0 {
		all = append(all, SuppressCause{Reason: AddressStopped, At: e.Stopped})
	}
	return all
}

// unchanged returns the conditions that the item has not changed since it was read.
func (e Suppression) unchanged() []table.Cond {
	return []table.Cond{
		table.Exists(), same("refusedAt", e.RefusedAt), same("stopped", e.Stopped),
	}
}

// same returns the condition that a number is n; a missing one is 0.
func same(attr string, n int64) table.Cond {
	if n == 0 {
		return table.AtMost(attr, 0)
	}
	return table.Equal(attr, n)
}

// SuppressedKey returns the key of an address's entry.
func SuppressedKey(address string) table.Key {
	sum := sha256.Sum256([]byte(contact.Canonical(address)))
	return table.Key{
		PK: suppressedPrefix + strconv.Itoa(int(sum[0]%shards)),
		SK: base64.RawURLEncoding.EncodeToString(sum[:]),
	}
}

// Suppress returns the operation that puts an address on the list. The owner's opt-out and the
// provider's reason do not replace each other.
func Suppress(address string, reason SuppressReason, detail string, now time.Time) table.Op {
	op := table.Update(SuppressedKey(address)).
		Set("v", int64(suppressedFormat)).
		Set("to", contact.Canonical(address))
	if reason == AddressStopped {
		return op.Set("stopped", now.UnixMilli())
	}
	return op.Set("refused", string(reason)).
		Set("detail", detail).
		Set("refusedAt", now.UnixMilli())
}

// readSuppressed reads the item under an address's key. If it is not found, the
// address gets mail.
func readSuppressed(item table.Item) (e Suppression, err error) {
	err = item.Decode(&e)
	return e, fault.Wrap(err, "reading a suppressed address", table.ErrNotFound)
}

// Suppressed returns an address's entry; ok is false if it gets mail. It makes one
// call to the table.
func Suppressed(
	ctx context.Context,
	t table.Table,
	address string,
) (e Suppression, ok bool, err error) {
	err = t.Get(ctx, SuppressedKey(address), &e)
	return e, len(e.Causes()) > 0, fault.Wrap(
		err,
		"looking for a suppressed address",
		table.ErrNotFound,
	)
}

// StopMail stores the opt-out of an address's owner. The time of the first opt-out stays. It makes
// one call to the table.
func StopMail(ctx context.Context, t table.Table, address string, now time.Time) error {
	op := Suppress(address, AddressStopped, "", now).If(table.AtMost("stopped", 0))
	return fault.Wrap(
		t.Update(ctx, op, &Suppression{}),
		"stopping the mail to an address",
		table.ErrCondition,
	)
}

// ResumeMail ends only the owner's opt-out. It makes two calls to the table, or one if there was no
// opt-out.
func ResumeMail(ctx context.Context, t table.Table, address string) error {
	_, _, err := lift(ctx, t, address, func(e *Suppression) { e.Stopped = 0 })
	return err
}

// AllowMail ends only the provider's reason, and returns the address's entry; was is
// false if there was no such reason.
func AllowMail(
	ctx context.Context,
	t table.Table,
	address string,
) (was bool, left Suppression, err error) {
	return lift(ctx, t, address, func(e *Suppression) {
		e.Refused = ""
		e.Detail = ""
		e.RefusedAt = 0
	})
}

// lift changes an address's entry; was is false if that makes no difference. An entry left
// without a reason is deleted.
func lift(
	ctx context.Context,
	t table.Table,
	address string,
	change func(*Suppression),
) (was bool, left Suppression, err error) {
	for range attempts {
		before, _, err := Suppressed(ctx, t, address)
		if err != nil {
			return false, Suppression{}, err
		}
		left = before
		change(&left)
		if left == before {
			return false, left, nil
		}
		op := table.Delete(SuppressedKey(address))
		if len(left.Causes()) > 0 {
			op = table.Put(SuppressedKey(address), left)
		}
		if err = t.Write(ctx, op.If(before.unchanged()...)); !errors.Is(err, table.ErrCondition) {
			return err == nil, left, fault.Wrap(err, "allowing mail to an address")
		}
	}
	return false, Suppression{}, fmt.Errorf("allowing mail to an address: %w", table.ErrBusy)
}

// AllSuppressed yields the whole list, in no particular order. It makes one call to
// the table for each partition, and one more for each further 1000 entries in it.
func AllSuppressed(ctx context.Context, t table.Table) iter.Seq2[Suppression, error] {
	return scan(ctx, t, table.Query{}, readSuppressed, partitions(suppressedPrefix)...)
}
