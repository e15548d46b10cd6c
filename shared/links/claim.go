package links

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/retry"
	"ferry/shared/table"
)

// A guarded link gives its bytes only for a claim: it redirects to LINK&claim=NONCE. Making a
// claim writes nothing; its signature shows that the link made it, and that the password was
// right. If the link has a limit, the first GET with a claim takes a download, in one transaction
// with an item for the claim. While that item is there, every request with this claim is free.

const (
	// claimLife is how long a claim can be used for the first time.
	claimLife = time.Hour
	// takenLife is how long a claim that has taken a download can be used, so that a long download
	// can be resumed.
	takenLife = 24 * time.Hour

	secretSize = 16
	// A nonce has random bytes, its end in Unix seconds, and the start of an HMAC-SHA256.
	nonceRandom, nonceTime, nonceSum = 12, 4, 16

	// takersMax is how many takers of downloads a link remembers, and takerSize how many bytes of
	// the hash of each. takerPause is how old a taker's entry is before it is written again, so
	// that many requests at once do not wait for each other.
	takersMax, takerSize, takerPause = 20, 16, time.Minute

	// takeTime is how long a request tries to take a download while others are faster.
	takeTime = 3 * time.Second
	takeWait = 30 * time.Millisecond
)

func claimKey(token, claim string) table.Key {
	return table.Key{
		PK: partition + keys.HashToken(token),
		SK: "claim#" + keys.HashToken(claim),
	}
}

// NewClaim returns a claim for a guarded link.
func (s *Service) NewClaim(l Link) (string, error) {
	b := make([]byte, nonceRandom, nonceRandom+nonceTime+nonceSum)
	if _, err := io.ReadFull(s.Random, b); err != nil {
		return "", fmt.Errorf("making a claim: %w", err)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(s.Now().Add(claimLife).Unix())) // until 2106
	return base64.RawURLEncoding.EncodeToString(append(b, l.sum(b)...)), nil
}

func (l Link) sum(b []byte) []byte {
	mac := hmac.New(sha256.New, l.Secret)
	io.WriteString(mac, "claim "+l.Token+" ")
	mac.Write(b)
	return mac.Sum(nil)[:nonceSum]
}

// checkClaim returns a fault unless the link made this claim, and it can still be used.
func (s *Service) checkClaim(l Link, claim string) error {
	b, err := base64.RawURLEncoding.DecodeString(claim)
	if err == nil && len(b) == nonceRandom+nonceTime+nonceSum && len(l.Secret) > 0 {
		b, sum := b[:nonceRandom+nonceTime], b[nonceRandom+nonceTime:]
		ends := int64(binary.BigEndian.Uint32(b[nonceRandom:]))
		if hmac.Equal(sum, l.sum(b)) && !l.spent && (l.taken || s.Now().Unix() < ends) {
			return nil
		}
	}
	return fault.New(
		fault.Unauthorized, "this address was for one download and has ended: open the link again",
	)
}

// claimed is what the table knows about a claim that has taken a download.
type claimed struct {
	V     int64 `json:"v"`
	Until int64 `json:"until"` // Unix seconds
}

// Taker is a hash of who took a download, and when, in Unix seconds.
type Taker struct {
	Who string `json:"who"`
	At  int64  `json:"at"`
}

// hash returns what a link keeps about who takes a download. The hash's key is the token, which
// the table does not have, so nobody can find an address there by trying all.
func (l Link) hash(who string) string {
	mac := hmac.New(sha256.New, []byte(l.Token))
	io.WriteString(mac, "taker "+who)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:takerSize])
}

// took reports whether the link remembers a download by the taker who, after the time since.
func (l Link) took(who string, since time.Time) bool {
	hash := l.hash(who)
	return slices.ContainsFunc(l.Takers, func(t Taker) bool {
		return t.Who == hash && t.At > since.Unix()
	})
}

// with returns the link's takers: it adds who as the last, and drops those from more than a day
// ago.
func (l Link) with(who string, now time.Time) []Taker {
	last, since := Taker{l.hash(who), now.Unix()}, now.Add(-takenLife).Unix()
	all := slices.DeleteFunc(slices.Clone(l.Takers), func(t Taker) bool {
		return t.Who == last.Who || t.At <= since
	})
	return append(all[max(0, len(all)-takersMax+1):], last)
}

// GoOn lets a request resume a download of a link that Find has returned. The link may be used
// up, if the taker who took a download within a day. If the link leads nowhere, the fault says
// why. It makes no call.
func (s *Service) GoOn(l Link, area blob.Area, who string) (Link, error) {
	l.taken = l.Limit > 0 && l.took(who, s.Now().Add(-takenLife))
	return l, s.check(l, area)
}

// Take takes one download of a link with a limit for a claim that Find has accepted, unless the
// claim already has one. It remembers who takes it, for GoOn, unless who is empty. If no download
// is left, the fault is Unauthorized; if others take downloads all the time, it is Unavailable.
// It makes one call to the table, and two more for each time that others were faster.
func (s *Service) Take(ctx context.Context, l Link, claim, who string) (Link, error) {
	ctx = context.WithoutCancel(ctx)
	for try := range s.turns().Loop(ctx) {
		if try.Failed > 0 {
			now, err := s.read(ctx, l.Token, claim)
			err = fault.Wrap(err, "taking a download", table.ErrNotFound)
			if err == nil {
				err = s.checkClaim(now, claim) // it may have taken a download while the clock was wrong
			}
			if err != nil {
				return now, err
			}
			l = now
		}
		if err := s.check(l, l.File.Area); err != nil || l.taken || l.Limit == 0 {
			return l, err
		}
		now := s.Now()
		until := now.Add(takenLife)
		take, most := table.Update(key(l.Token)).Add("taken", 1), l.Limit-1
		forgotten := try.Failed >= takersMax // so many others were faster that they would push this one out
		if who != "" && !forgotten && !l.took(who, now.Add(-takerPause)) {
			take, most = take.Set("takers", l.with(who, now)), l.Taken // so that no other taker is lost
		}
		err := s.Table.Write(ctx,
			table.Put(claimKey(l.Token, claim), claimed{table.Format, until.Unix()}).
				Expire(until).
				If(table.NotExists()),
			take.If(table.Exists(), table.AtMost("taken", most), table.Equal("limit", l.Limit)),
		)
		if err == nil {
			l.taken = true
			return l, nil
		}
		if !errors.Is(err, table.ErrCondition) && !errors.Is(err, table.ErrBusy) {
			return l, fault.Wrap(err, "taking a download")
		}
	}
	return l, crowded()
}

// turns is the backoff of a request that others were faster than.
func (s *Service) turns() retry.Backoff {
	return retry.Backoff{
		First:   2 * takeWait,
		Longest: 2 * takeWait,
		For:     takeTime,
		Clock:   s.Now,
	}
}

// crowded is the fault if others were faster all the time.
func crowded() error {
	return &fault.Fault{
		Kind:   fault.Unavailable,
		Detail: "many people are opening this link right now; try again",
		After:  time.Second,
	}
}
