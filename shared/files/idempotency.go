package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/table"
)

const (
	// KeyHeader is the name of the request's header.
	KeyHeader = "Idempotency-Key"
	// KeyMemory is how long a result is remembered.
	KeyMemory = 24 * time.Hour
	// MaxLease is the longest lease, and the one of a request whose size is
	// not known.
	MaxLease = time.Hour
)

const (
	maxKey = 255
	// minLease and leaseRate give a request time by the length of its body.
	minLease  = 30 * time.Second
	leaseRate = 128 << 10 // bytes a second
	// askAgain is when to repeat a request that another is carrying out.
	askAgain = 5 * time.Second
)

// The states of an item.
const (
	claimRunning = "running"
	claimDone    = "done"
)

type claimItem struct {
	V           int64  `json:"v"`
	State       string `json:"state"`
	Claim       string `json:"claim"` // random, of the request that has the key
	Fingerprint string `json:"fingerprint"`
	Result      string `json:"result,omitempty"`
	Expires     int64  `json:"expires"` // Unix seconds: of the lease, or of the result
}

// Claims and results let a client repeat a request of which it does not know
// whether it was carried out, by the header Idempotency-Key: the repeat is
// answered with the first result and stores nothing twice.
//
// A request claims its key before it stores anything, and the transaction that
// makes its result visible also marks the claim as done. So what was stored and
// what the key remembers cannot differ. The claim of a request that died is free
// when its lease has run out; if that request lives after all, its transaction is
// refused.

// KeyRequest is what a claim is for.
type KeyRequest struct {
	User        auth.User // who asks; keys of different users are different
	Key         string    // as Key returns it; empty claims nothing
	Fingerprint string    // as Fingerprint returns it
	Lease       time.Duration
}

// ReadKey returns the key that a request has, empty if it has none. One that is
// not of 1 to 255 visible ASCII characters is an Invalid fault.
func ReadKey(h http.Header) (string, error) {
	values := h.Values(KeyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	hidden := strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
	if len(values) > 1 || key == "" || len(key) > maxKey || hidden {
		return "", envelope.NewFault(envelope.Invalid, "%s is one value of 1 to %d visible ASCII characters", KeyHeader, maxKey)
	}
	return key, nil
}

// Fingerprint tells requests apart: equal parts, in number and order, have
// equal fingerprints.
func Fingerprint(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Lease is how long a request may take whose body has so many bytes; -1 is not
// known. It need not be enough: a request that takes longer fails only if
// another with its key came after the lease.
func Lease(bytes int64) time.Duration {
	if bytes < 0 || bytes > int64(MaxLease/time.Second)*leaseRate {
		return MaxLease
	}
	return min(minLease+time.Duration(bytes/leaseRate)*time.Second, MaxLease)
}

// Claim is a request's hold on its key, or the result of an earlier request
// with it. A nil Claim is that of a request without a key; its methods know
// that. It is for one goroutine.
type Claim struct {
	s       *Service
	key     table.Key
	item    claimItem
	earlier bool
}

// Claim takes the key of a request, before anything is stored for it. One call
// to the table if the key is new, else two or three. A Conflict fault tells
// that the key belongs to another request, or, with a time to ask again, that
// the same request is being carried out.
func (s *Service) Claim(ctx context.Context, r KeyRequest) (*Claim, error) {
	if r.Key == "" {
		return nil, nil
	}
	unique, err := s.unique(16)
	if err != nil {
		return nil, err
	}
	c := &Claim{s: s, key: itemKey(r), item: claimItem{
		V: layout, State: claimRunning, Claim: unique, Fingerprint: r.Fingerprint,
		Expires: s.Now().Add(r.Lease).Unix(),
	}}
	err = s.Table.Write(ctx, c.put(table.NotExists()).Relax())
	if errors.Is(err, table.ErrCondition) {
		return c.again(ctx)
	}
	if err != nil {
		c.Release(ctx) // it may be that the answer alone is lost
		return nil, fmt.Errorf("claiming a key: %w", err)
	}
	return c, nil
}

// itemKey is of a user's incarnation, so that a later user of the name meets
// no keys of the earlier.
func itemKey(r KeyRequest) table.Key {
	hash := Fingerprint(r.Key, fmt.Sprint(r.User.Incarnation))
	return table.Key{PK: "idem#" + r.User.Name + "#" + hash, SK: "idem"}
}

func (c *Claim) put(cond table.Cond) table.Op {
	return table.Put(c.key, c.item).If(cond).Expire(c.s.Now().Add(KeyMemory))
}

// again looks at the item that is in the way.
func (c *Claim) again(ctx context.Context) (*Claim, error) {
	var old claimItem
	err := c.s.Table.Get(ctx, c.key, &old)
	left := time.Unix(old.Expires, 0).Sub(c.s.Now())
	switch {
	case errors.Is(err, table.ErrNotFound): // given up at this moment
		return nil, errRunning(time.Second)
	case err != nil:
		return nil, fmt.Errorf("reading a key: %w", err)
	case old.Claim == c.item.Claim: // the answer to the claim was lost
		return c, nil
	case left <= 0:
		return c.takeOver(ctx, old)
	case old.Fingerprint != c.item.Fingerprint:
		return nil, ErrOtherRequest()
	case old.State == claimRunning:
		return nil, errRunning(min(left, askAgain))
	}
	c.item, c.earlier = old, true
	return c, nil
}

// takeOver takes a key whose lease or result has expired.
func (c *Claim) takeOver(ctx context.Context, old claimItem) (*Claim, error) {
	err := c.s.Table.Write(ctx, c.put(table.Equal("claim", old.Claim)).Relax())
	if errors.Is(err, table.ErrCondition) {
		return nil, errRunning(time.Second)
	}
	return c, envelope.Wrap(err, "claiming a key")
}

// ErrOtherRequest is the Conflict fault of a key that belongs to another request, for
// callers that find this out by what the fingerprint leaves out.
func ErrOtherRequest() error {
	return envelope.NewFault(envelope.Conflict, "the %s was used for another request", KeyHeader)
}

func errRunning(after time.Duration) error {
	return &envelope.Fault{Kind: envelope.Conflict, Detail: "a request with this " + KeyHeader + " is being carried out", After: after}
}

// Result returns what an earlier request with the key and the same fingerprint
// has stored, if there was one: then nothing is left to do but to answer so.
func (c *Claim) Result() (result string, ok bool) {
	if c == nil || !c.earlier {
		return "", false
	}
	return c.item.Result, true
}

// Done returns the operation that remembers the result. It must be the first
// of the transaction that makes the result visible, whose error goes to Lost.
// The result is at most some KiB, and holds nothing secret.
func (c *Claim) Done(result string) []table.Op {
	if c == nil {
		return nil
	}
	finished := *c
	finished.item.State, finished.item.Result = claimDone, result
	finished.item.Expires = c.s.Now().Add(KeyMemory).Unix()
	return []table.Op{finished.put(table.Equal("claim", c.item.Claim))}
}

// Lost returns a Conflict fault if err, a transaction's, says that another
// request has taken the key, and else err as it is.
func (c *Claim) Lost(err error) error {
	if refused, ok := errors.AsType[*table.ConditionError](err); ok && c != nil && refused.Op == 0 {
		return &envelope.Fault{Kind: envelope.Conflict, Detail: "the request took so long that another with its " + KeyHeader + " was let in", Cause: err}
	}
	return err
}

// Release gives the key back after a failure, so that the request can be
// repeated. It may be called whatever became of the transaction: a result
// stays, and a transaction that is still under way will be refused. It works
// also when ctx has ended. An error concerns nobody: the lease runs out.
func (c *Claim) Release(ctx context.Context) {
	if c == nil || c.earlier {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	_ = c.s.Table.Write(ctx, table.Delete(c.key).
		If(table.Equal("claim", c.item.Claim), table.Equal("state", claimRunning)).Relax())
}

// receipt is what is remembered of a file that an upload with a key has stored:
// enough to answer a repeat, and to know it from another upload.
type receipt struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Length   int64  `json:"length"`
	Modified int64  `json:"modified"`
	CRC64    string `json:"crc64"`
}

// remember returns what makes a commit remember what it stores, if a key was given.
func remember(c *Claim, stored []File) ([]table.Op, error) {
	if c == nil {
		return nil, nil
	}
	all := make([]receipt, len(stored))
	for i, f := range stored {
		all[i] = receipt{ID: f.ID, Name: f.Name, Length: f.Length, Modified: f.Modified, CRC64: f.CRC64}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding what was stored: %w", err)
	}
	return c.Done(string(text)), nil
}

// Repeat is an upload that was carried out before. It takes the files as an
// Upload does, and stores nothing. It is for one goroutine.
type Repeat struct {
	s     *Service
	owner string
	first []*Listed
	seen  []File
}

// Repeat returns the repeat of an upload into the area of owner that had this
// result.
func (s *Service) Repeat(owner, result string) (*Repeat, error) {
	var all []receipt
	if err := json.Unmarshal([]byte(result), &all); err != nil {
		return nil, fmt.Errorf("reading the result of an upload: %w", err)
	}
	r := &Repeat{s: s, owner: owner}
	for _, f := range all {
		r.first = append(r.first, s.Listed(File{
			Owner: owner, Area: blob.Files, ID: f.ID, Name: f.Name, Length: f.Length, Modified: f.Modified, CRC64: f.CRC64,
		}))
	}
	return r, nil
}

// Add reads the bytes of a part.
func (r *Repeat) Add(ctx context.Context, p Part) error {
	if len(r.seen) == len(r.first) {
		return ErrOtherRequest()
	}
	body := &blob.Body{R: p.Body, Size: p.Size, SHA256: p.SHA256}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return bodyFault(err)
	}
	read := body.Written()
	r.seen = append(r.seen, File{Name: p.Name, Length: read.Size, CRC64: fmt.Sprintf("%016x", read.CRC64NVME)})
	return ctx.Err()
}

// Stored returns the files read so far, of which only name, length and
// checksum are known.
func (r *Repeat) Stored() []File { return r.seen }

// Files returns the files that the first upload has stored and, if they are the
// uploader's own, List of the newest with them at their end, if so many came since:
// that costs one call to the table. That the repeat brought others is a Conflict
// fault.
func (r *Repeat) Files(ctx context.Context, uploader auth.User, limit int) (page Page, err error) {
	if len(r.seen) != len(r.first) {
		return page, ErrOtherRequest()
	}
	for i, f := range r.first {
		if s := r.seen[i]; s.Name != f.Name || s.Length != f.Length || s.CRC64 != f.CRC64 {
			return page, ErrOtherRequest()
		}
	}
	if r.owner != uploader.Name {
		return Page{Files: r.first}, nil
	}
	page, err = r.s.List(ctx, uploader, blob.Files, 0, limit)
	return page.With(r.first...), err
}
