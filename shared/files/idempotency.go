package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/keys"
	"ferry/shared/table"
)

// With the header Idempotency-Key a client can repeat a request when it does not know whether the
// first one succeeded. The repeat stores nothing, and gets the result of the first.
//
// A request takes its key before it stores anything. The transaction that makes its result
// visible also marks the hold as done, so the two cannot differ. If a request dies, its hold
// runs out and another may take over the key. If the first request was only slow, its transaction
// is then refused. If a file of the result was deleted since, the repeat gets a Gone fault
// instead of a dead link.

const (
	// KeyHeader is the name of the request's header.
	KeyHeader = "Idempotency-Key"
	// KeyMemory is how long a result is remembered.
	KeyMemory = 24 * time.Hour

	maxKey = 255
	// A hold grows with the length of the body, if that is known.
	shortestHold = 30 * time.Second
	holdRate     = 128 << 10 // bytes a second
	longestHold  = time.Hour
	// retryAfter is when a client may retry while its first request still runs.
	retryAfter = 5 * time.Second

	holdRunning = "running"
	holdDone    = "done"
)

type holdItem struct {
	V           int64  `json:"v"`
	State       string `json:"state"` // holdRunning or holdDone
	Unique      string `json:"claim"` // a random name for the request that holds the key
	Fingerprint string `json:"fingerprint"`
	Result      string `json:"result,omitempty"`
	Expires     int64  `json:"expires"` // Unix seconds: of the hold, or of the result
}

// KeyRequest says which request takes a key.
type KeyRequest struct {
	By          By     // the caller; each has separate keys
	Key         string // as ReadKey returns it; empty takes nothing
	Fingerprint string // as the function Fingerprint returns it
	HoldFor     time.Duration
}

// ReadKey returns the key of a request, or an empty string if it has none. If it
// is not one value of 1 to 255 visible ASCII characters, the fault is Invalid.
func ReadKey(h http.Header) (string, error) {
	values := h.Values(KeyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	hidden := strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
	if len(values) > 1 || key == "" || len(key) > maxKey || hidden {
		return "", fault.New(
			fault.Invalid,
			"%s must be one value of 1 to %d visible ASCII characters",
			KeyHeader,
			maxKey,
		)
	}
	return key, nil
}

// Fingerprint returns a hash that is equal only for equal parts in the same order.
func Fingerprint(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// HoldTime returns how long a request may hold its key if its body has this many bytes; -1 means
// unknown. A request that takes longer fails only if another request with its key comes after the
// hold.
func HoldTime(bytes int64) time.Duration {
	if bytes < 0 || bytes > int64(longestHold/time.Second)*holdRate {
		return longestHold
	}
	return min(shortestHold+time.Duration(bytes/holdRate)*time.Second, longestHold)
}

// Hold is a request's hold on its key, or the result of an earlier request with
// the key. A request without a key has a nil Hold, which all methods accept.
// A Hold is for one goroutine.
type Hold struct {
	s         *Service
	key       table.Key
	item      holdItem
	hasResult bool // of an earlier request
}

// Hold takes the key of a request, before anything is stored for it. It makes
// one call to the table if the key is new, else two or three. A Conflict fault
// means that the key belongs to a different request or, if it says when to
// retry, that the same request is still running.
func (s *Service) Hold(ctx context.Context, r KeyRequest) (*Hold, error) {
	if r.Key == "" {
		return nil, nil
	}
	unique, err := keys.RandomID(s.Random, 16)
	if err != nil {
		return nil, err
	}
	c := &Hold{s: s, key: holdKey(r), item: holdItem{
		V:           table.Format,
		State:       holdRunning,
		Unique:      unique,
		Fingerprint: r.Fingerprint,
		Expires:     s.Now().Add(r.HoldFor).Unix(),
	}}
	err = s.Table.Write(ctx, c.put(table.NotExists()).Relax())
	if errors.Is(err, table.ErrCondition) {
		return c.resolveConflict(ctx)
	}
	if err != nil {
		c.Release(ctx) // perhaps only the table's answer was lost
		return nil, fmt.Errorf("taking a key: %w", err)
	}
	return c, nil
}

// holdKey includes the user's incarnation, so that a later user of the same name does not hit
// the earlier one's keys.
func holdKey(r KeyRequest) table.Key {
	hash := Fingerprint(r.Key, fmt.Sprint(r.By.UserIncarnation))
	return table.Key{
		PK: "idem#" + cmp.Or(r.By.User, "request:"+r.By.Guest) + "#" + hash,
		SK: "idem",
	}
}

func (c *Hold) put(cond table.Cond) table.Op {
	return table.Put(c.key, c.item).If(cond).Expire(c.s.Now().Add(KeyMemory))
}

// resolveConflict reads the request that holds the key, and decides what to do.
func (c *Hold) resolveConflict(ctx context.Context) (*Hold, error) {
	var old holdItem
	err := c.s.Table.Get(ctx, c.key, &old)
	left, life := time.Unix(old.Expires, 0).Sub(c.s.Now()), KeyMemory
	if old.State == holdRunning {
		life = longestHold
	}
	switch {
	case errors.Is(err, table.ErrNotFound): // it was just released
		return nil, errRunning(time.Second)
	case err != nil:
		return nil, fmt.Errorf("reading a key: %w", err)
	case old.Unique == c.item.Unique: // it is ours: the table's answer was lost
		return c, nil
	case table.Ended(c.s.Now(), old.Expires, life):
		return c.takeOver(ctx, old)
	case old.Fingerprint != c.item.Fingerprint:
		return nil, errOtherRequest()
	case old.State == holdRunning:
		return nil, errRunning(min(left, retryAfter))
	}
	c.item, c.hasResult = old, true
	return c, nil
}

// takeOver takes a key whose hold or result has expired.
func (c *Hold) takeOver(ctx context.Context, old holdItem) (*Hold, error) {
	err := c.s.Table.Write(ctx, c.put(table.Equal("claim", old.Unique)).Relax())
	if errors.Is(err, table.ErrCondition) {
		return nil, errRunning(time.Second)
	}
	return c, fault.Wrap(err, "taking a key")
}

func errOtherRequest() error {
	return fault.New(fault.Conflict, "the %s was used for another request", KeyHeader)
}

func errRunning(after time.Duration) error {
	return &fault.Fault{
		Kind:   fault.Conflict,
		Detail: "a request with this " + KeyHeader + " is still running",
		After:  after,
	}
}

// Result returns the result of an earlier request with the same key and
// fingerprint. If ok, the caller stores nothing and answers with the result.
func (c *Hold) Result() (result string, ok bool) {
	if c == nil || !c.hasResult {
		return "", false
	}
	return c.item.Result, true
}

// Done returns the operation that remembers the result. It must be the first in the transaction
// that makes the result visible, and that transaction's error must be passed to Lost. Keep the
// result to a few KiB, without secrets.
func (c *Hold) Done(result string) []table.Op {
	if c == nil {
		return nil
	}
	done := *c
	done.item.State, done.item.Result = holdDone, result
	done.item.Expires = c.s.Now().Add(KeyMemory).Unix()
	return []table.Op{done.put(table.Equal("claim", c.item.Unique))}
}

// Lost returns a Conflict fault if a transaction failed with err because another
// request has taken over the key. It returns any other err unchanged.
func (c *Hold) Lost(err error) error {
	if refused, ok := errors.AsType[*table.ConditionError](err); ok &&
		c != nil &&
		refused.Op == 0 {
		return &fault.Fault{
			Kind: fault.Conflict,
			Detail: "the request took so long that another one with its " +
				KeyHeader +
				" took over",
			Cause: err,
		}
	}
	return err
}

// Release gives the key back after a failure, so that the client can repeat the request. It is
// safe even if the transaction may have succeeded or is still under way: a stored result stays,
// and a later transaction is refused. It works even after ctx has ended. The error can be
// ignored, since the hold runs out anyway.
func (c *Hold) Release(ctx context.Context) {
	if c == nil || c.hasResult {
		return
	}
	ctx, cancel := cleaning(ctx)
	defer cancel()
	_ = c.s.Table.Write(ctx, table.Delete(c.key).
		If(table.Equal("claim", c.item.Unique), table.Equal("state", holdRunning)).Relax())
}

// rememberedFile is what a key remembers about a stored file: enough to answer a repeat, and to
// tell it from a different upload.
type rememberedFile struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Length   int64  `json:"length"`
	Modified int64  `json:"modified"`
	CRC64    string `json:"crc64"`
	Key      int64  `json:"key,omitempty"`

	Protected bool `json:"protected,omitempty"` // its link needs a password
}

// rememberFiles returns the operation that remembers the stored files, if there is
// a hold.
func rememberFiles(c *Hold, stored []File, sending Sending) []table.Op {
	all := make([]rememberedFile, len(stored))
	for i, f := range stored {
		all[i] = rememberedFile{
			ID:        f.ID,
			Name:      f.Name,
			Length:    f.Length,
			Modified:  f.Modified,
			CRC64:     f.CRC64,
			Key:       f.Key,
			Protected: sending.Password != "",
		}
	}
	text, _ := json.Marshal(all) // texts and numbers always marshal
	return c.Done(string(text))
}

// Repeat is an upload that was already done. It has the methods of an Upload, but stores
// nothing. It is for one goroutine.
type Repeat struct {
	s        *Service
	uploader identity.Identity
	first    []*Listed
	seen     []File

	unprotected bool // the first upload had no password
	protects    bool // the repeat has one
}

// Repeat returns a Repeat of the uploader's earlier upload into the area of owner, whose result
// this hold has.
func (c *Hold) Repeat(uploader identity.Identity, owner string) (*Repeat, error) {
	s := c.s
	var all []struct {
		File
		Protected bool
	}
	if err := json.Unmarshal([]byte(c.item.Result), &all); err != nil {
		return nil, fmt.Errorf("reading the result of an upload: %w", err)
	}
	r := &Repeat{s: s, uploader: uploader}
	for _, f := range all {
		f.By = ByOf(uploader)
		f.Owner = owner
		f.Area = blob.Files
		r.first = append(r.first, s.listed(f.File))
		r.unprotected = r.unprotected || !f.Protected
	}
	return r, nil
}

// Add reads the bytes of a part, for comparison with the first upload.
func (r *Repeat) Add(ctx context.Context, p Part) error {
	if len(r.seen) == len(r.first) {
		return errOtherRequest()
	}
	body := &blob.Body{R: p.Body, Size: p.Size, SHA256: p.SHA256}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return bodyFault(err)
	}
	read := body.Written()
	id := r.first[len(r.seen)].ID
	r.seen = append(r.seen, File{
		ID:     id,
		Name:   p.Name,
		Length: read.Size,
		CRC64:  fmt.Sprintf("%016x", read.CRC64NVME),
	})
	return ctx.Err()
}

// Stored returns the files read so far, with only their id, name, length and checksum.
func (r *Repeat) Stored() []File { return r.seen }

// Name returns the name of the first file of the first upload.
func (r *Repeat) Name() string { return r.first[0].Name }

// Protect notes that the links should have a password.
func (r *Repeat) Protect(string) { r.protects = true }

// Abort does nothing, as nothing is stored.
func (r *Repeat) Abort(context.Context) {}

// Commit returns a page as Upload.Commit does. It makes one call to the table for a list, and one
// more if the list lacks files of the first upload. If the repeat brought different files, or a
// password that the first upload did not have, the fault is Conflict; if one of the first files
// was deleted since, it is Gone.
func (r *Repeat) Commit(ctx context.Context, limit int) (page Page, err error) {
	same := slices.EqualFunc(r.seen, r.first, func(s File, f *Listed) bool {
		return s.Name == f.Name && s.Length == f.Length && s.CRC64 == f.CRC64
	})
	if !same || r.protects && r.unprotected {
		return page, errOtherRequest()
	}
	if limit == 0 {
		page.Files, err = r.s.kept(ctx, r.first...)
		return page, err
	}
	if page, err = r.s.List(ctx, r.uploader.User, blob.Files, 0, limit); err != nil {
		return page, err
	}
	missing := slices.DeleteFunc(slices.Clone(r.first), func(f *Listed) bool {
		return slices.ContainsFunc(page.Files, func(l *Listed) bool { return l.ID == f.ID })
	})
	missing, err = r.s.kept(ctx, missing...)
	return page.With(missing...), err
}

// kept returns files that were stored in user areas as they are now, with one call to the table
// if there are any. If one of the files is no longer there, the fault is Gone.
func (s *Service) kept(ctx context.Context, stored ...*Listed) (now []*Listed, err error) {
	keys := make([]table.Key, len(stored))
	for i, f := range stored {
		keys[i] = f.key()
	}
	if len(keys) == 0 {
		return nil, nil
	}
	items, err := s.Table.GetMany(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("reading files that were stored: %w", err)
	}
	for i, item := range items {
		f, err := s.records.Read(item, s.decodeRecord)
		switch {
		case errors.Is(err, table.ErrNotFound), err == nil && f.Expired(s.Now()):
			return nil, fault.New(
				fault.Gone,
				"file %d has been deleted since this request stored it",
				stored[i].ID,
			)
		case err != nil:
			s.unreadable(ctx, item.Key, err)
			f = stored[i]
		}
		now = append(now, f)
	}
	return now, nil
}
