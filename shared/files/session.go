package files

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/idempotency"
	"ferry/shared/limits"
	"ferry/shared/notices"
	"ferry/shared/table"
	"ferry/shared/users"
)

const (
	// SessionLife is how long an upload session is open.
	SessionLife = 7 * 24 * time.Hour
	// sessionMemory is how long a session is still known after its end, so
	// that it can be told from one that never was. What the store keeps of
	// it is swept after that.
	sessionMemory = blob.PartsLife - SessionLife
	// MaxLength is the largest file: 10,000 parts of 5 GiB.
	MaxLength = blob.MaxParts * blob.MaxPartSize
	// usualPartSize is large enough to use a connection well and small enough
	// to be sent again.
	usualPartSize = 16 << 20
	// hashStep is how much of a file one request reads to compare its SHA-256
	// with the stated one: what a function reads in a few seconds.
	hashStep = 512 << 20
)

// Session is an upload that arrives in parts: all that there is of it, but for
// what the store knows of its parts.
type Session struct {
	V           int64            `json:"v"`
	ID          string           `json:"id"` // as the name in the key of its object
	Owner       string           `json:"owner"`
	Incarnation int64            `json:"incarnation,omitempty"` // the owner's
	Uploader    string           `json:"uploader"`
	ByWhich     int64            `json:"byWhich,omitempty"` // the uploader's incarnation
	Name        string           `json:"name"`
	Type        string           `json:"type,omitempty"`
	Length      int64            `json:"length"`
	PartSize    int64            `json:"partSize"`
	SHA256      []byte           `json:"sha256,omitempty"`
	Notices     []notices.Notice `json:"notices,omitempty"`
	Counted     int64            `json:"counted,omitempty"` // Unix milliseconds: when these counted again, after Created
	Receipt     Receipt          `json:"receipt"`
	Upload      string           `json:"upload"` // the store's name for it
	FileID      int64            `json:"fileId"`
	Reserved    string           `json:"reserved,omitempty"` // of the owner's quota
	Created     int64            `json:"created"`            // Unix milliseconds
	Expires     int64            `json:"expires"`            // Unix seconds
	Done        bool             `json:"done"`
	Hashed      int64            `json:"hashed,omitempty"` // bytes of the object whose SHA-256 is Hash
	Hash        []byte           `json:"hash,omitempty"`   // the state of crypto/sha256
}

// gone is when the session is forgotten.
func (s Session) gone() time.Time { return time.Unix(s.Expires, 0).Add(sessionMemory) }

// Layout is how its bytes are cut.
func (s Session) Layout() blob.Layout { return blob.Layout{Length: s.Length, PartSize: s.PartSize} }

func (s Session) blobKey() string { return s.Owner + "/" + s.ID }

func sessionKey(id string) table.Key { return table.Key{PK: "upload#" + id, SK: "upload"} }

// indexKey orders a user's sessions by the time of their begin.
func (s Session) indexKey() table.Key {
	return table.Key{PK: sessions(s.Uploader), SK: fmt.Sprintf("%016d-%s", s.Created, s.ID)}
}

func sessions(uploader string) string { return "uploads#" + uploader }

// PartSize is how large the parts of a file are: as wished, as far as that is
// possible, in whole MiB.
func PartSize(length, wish int64) int64 {
	const mib = 1 << 20
	if wish <= 0 {
		wish = usualPartSize
	}
	least := (length + blob.MaxParts - 1) / blob.MaxParts
	size := (max(wish, least, blob.MinPartSize) + mib - 1) / mib * mib
	return min(size, blob.MaxPartSize)
}

// Plan is what a session is begun with.
type Plan struct {
	Owner    string // a canonical name
	Name     string
	Type     string
	Length   int64
	PartSize int64 // wished; 0 leaves it open
	SHA256   []byte
	Sending
}

// BeginSession opens a session. Three calls: the file's id, the store's
// session, the record; one more if there are recipients, whose notices count
// from now; and one more for an owner with a quota, whose room is reserved for
// as long as the session lives.
func (s *Service) BeginSession(ctx context.Context, uploader users.User, p Plan, claim *idempotency.Claim) (Session, error) {
	u := &Upload{
		s: s, owner: p.Owner, uploader: uploader, sending: p.Sending, max: p.Length, life: SessionLife + sessionMemory,
	}
	u.anyIncarnation()
	if err := u.allow(ctx); err != nil {
		return Session{}, err
	}
	if err := u.enter(ctx); err != nil {
		u.Abort(ctx)
		return Session{}, err
	}
	key, err := s.blobKey(u.owner, u.id)
	if err != nil {
		u.Abort(ctx)
		return Session{}, err
	}
	now := s.Now()
	it := Session{
		V: layout, ID: strings.TrimPrefix(key, u.owner+"/"), Owner: u.owner, Incarnation: u.latest,
		Uploader: uploader.Name, ByWhich: uploader.Incarnation, Name: p.Name, Type: p.Type, Length: p.Length,
		PartSize: PartSize(p.Length, p.PartSize), SHA256: p.SHA256, Notices: p.Recipients, Receipt: p.Receipt, FileID: u.id,
		Created: now.UnixMilli(), Expires: now.Add(SessionLife).Unix(),
	}
	if u.quota != nil {
		it.Reserved = u.quota.key.SK
	}
	if it.Upload, err = s.Parts.BeginParts(ctx, blob.Files, key, it.Layout()); err != nil {
		u.Abort(ctx)
		return Session{}, fmt.Errorf("beginning an upload: %w", err)
	}
	gone := it.gone()
	ops := append(claim.Done(it.ID),
		table.Put(sessionKey(it.ID), it).If(table.NotExists()).Expire(gone),
		table.Put(it.indexKey(), it).Expire(gone))
	err = s.Table.Write(ctx, ops...)
	if refused(err) {
		u.Abort(ctx)
		s.endParts(ctx, it)
	}
	if lost := claim.Lost(err); fault.Is(lost, fault.Conflict) {
		return Session{}, lost
	}
	if err != nil {
		return Session{}, fmt.Errorf("storing an upload session: %w", err)
	}
	return it, nil
}

// endParts removes what the store keeps of a session; what remains is swept.
func (s *Service) endParts(ctx context.Context, it Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	_ = s.Parts.AbortParts(ctx, blob.Files, it.blobKey(), it.Upload)
}

func errNoSession() error { return fault.New(fault.NotFound, "no upload session of that id") }

// Session returns the session that this user has begun. One call.
func (s *Service) Session(ctx context.Context, u users.User, id string) (Session, error) {
	it, err := s.session(ctx, id)
	if err == nil && (it.Uploader != u.Name || it.ByWhich != u.Incarnation) {
		return Session{}, errNoSession()
	}
	return it, err
}

// session returns one that is open or done.
func (s *Service) session(ctx context.Context, id string) (it Session, err error) {
	if len(id) > 64 {
		return it, errNoSession()
	}
	err = s.Table.Get(ctx, sessionKey(id), &it)
	switch {
	case errors.Is(err, table.ErrNotFound):
		return it, errNoSession()
	case err != nil:
		return it, fmt.Errorf("reading an upload session: %w", err)
	case !it.Done && s.Now().Unix() >= it.Expires:
		return it, fault.New(fault.NotFound, "the upload session has expired")
	}
	return it, nil
}

// Sessions is a page of a user's open sessions, newest first. Next is what to
// continue after, empty if there is nothing more.
func (s *Service) Sessions(ctx context.Context, u users.User, after string, limit int) (page []Session, next string, err error) {
	found, err := s.Table.Query(ctx, table.Query{PK: sessions(u.Name), Descending: true, After: after, Limit: limit})
	if err != nil {
		return nil, "", fmt.Errorf("listing upload sessions: %w", err)
	}
	for _, item := range found.Items {
		var it Session
		if err := item.Decode(&it); err != nil {
			return nil, "", fmt.Errorf("reading an upload session: %w", err)
		}
		if s.Now().Unix() < it.Expires && it.ByWhich == u.Incarnation {
			page = append(page, it)
		}
		if found.More {
			next = item.Key.SK
		}
	}
	return page, next, nil
}

// Arrived lists the parts that are there. One call for each 1,000. Those of a
// session that is done are a file.
func (s *Service) Arrived(ctx context.Context, it Session) ([]blob.Part, error) {
	if it.Done {
		return nil, nil
	}
	parts, err := blob.AllParts(ctx, s.Parts, blob.Files, it.blobKey(), it.Upload)
	if errors.Is(err, blob.ErrNoUpload) {
		return nil, nil // being completed, or about to end
	}
	if err != nil {
		return nil, fmt.Errorf("listing parts: %w", err)
	}
	return parts, nil
}

// SignPart returns the request by which a part is sent to the store, or
// blob.ErrUnsupported if it has to go through this process.
func (s *Service) SignPart(ctx context.Context, it Session, number int, sum *uint64, life time.Duration) (blob.SignedPart, error) {
	return s.Parts.SignPart(ctx, blob.Files, it.blobKey(), it.Upload, it.Layout(), number, sum, life)
}

// WritePart stores a part of a session. One call to the table.
func (s *Service) WritePart(ctx context.Context, id string, number int, r io.Reader, sum *uint64) (blob.Part, error) {
	it, err := s.session(ctx, id)
	if err != nil {
		return blob.Part{}, err
	}
	if it.Done {
		return blob.Part{}, errDone()
	}
	if err := it.Layout().CheckNumber(number); err != nil {
		return blob.Part{}, fault.New(fault.Invalid, "the file has parts 1 to %d", it.Layout().Count())
	}
	part, err := s.Parts.WritePart(ctx, blob.Files, it.blobKey(), it.Upload, it.Layout(), number, r, sum)
	switch {
	case errors.Is(err, blob.ErrLength):
		return part, &fault.Error{Kind: fault.Invalid, Cause: err,
			Detail: fmt.Sprintf("part %d has %d bytes, and other than that were sent", number, it.Layout().Size(number))}
	case errors.Is(err, blob.ErrSuperseded):
		return part, &fault.Error{Kind: fault.Conflict, Detail: "the part is being sent a second time", Cause: err}
	case errors.Is(err, blob.ErrNoUpload):
		return part, errNoSession()
	}
	return part, sumFault(err, fmt.Sprintf("part %d", number))
}

func errDone() error { return fault.New(fault.Conflict, "the upload is complete") }

// sumFault tells a checksum that is wrong.
func sumFault(err error, what string) error {
	var sum *blob.SumError
	if errors.As(err, &sum) {
		return &fault.Error{Kind: fault.Invalid, Cause: err,
			Detail: fmt.Sprintf("the CRC64NVME of %s is %016x, stated was %016x", what, sum.Got, sum.Stated)}
	}
	return err
}

// Complete makes the file of a session visible, or tells what is missing. To
// repeat it gives the same file. sum is the CRC64NVME of the whole, or nil.
//
// After the session is read it costs the owner's profile, the store's calls,
// and one transaction; and one more if it has recipients and was begun in
// another hour.
func (s *Service) Complete(ctx context.Context, it Session, sum *uint64) (Listed, error) {
	if it.Done {
		return s.completed(ctx, it)
	}
	var owner users.User
	err := s.Table.Get(ctx, users.Key(it.Owner), &owner)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return Listed{}, fmt.Errorf("reading a user: %w", err)
	}
	if err != nil || owner.Incarnation != it.Incarnation || owner.State == users.Disabled {
		return Listed{}, fault.New(fault.Invalid, "the destination user does not exist any more")
	}
	if err := s.recount(ctx, &it); err != nil {
		return Listed{}, err
	}
	written, err := s.Parts.CompleteParts(ctx, blob.Files, it.blobKey(), it.Upload, it.Layout(), sum)
	if errors.Is(err, blob.ErrNoUpload) {
		return s.overtaken(ctx, it, fault.New(fault.NotFound, "the parts of the upload are gone; begin it anew"))
	}
	if err == nil {
		err = s.checkHash(ctx, it)
	}
	if err != nil {
		return Listed{}, completeFault(err)
	}
	f := File{
		V: layout, Owner: it.Owner, Incarnation: it.Incarnation, Area: blob.Files, ID: it.FileID, Name: it.Name,
		Type: it.Type, Length: written.Size, Modified: s.Now().UnixMilli(), Blob: it.blobKey(),
		CRC64: fmt.Sprintf("%016x", written.CRC64NVME), SHA256: it.SHA256, Expires: s.expiry(blob.Files, owner),
	}
	if it.Uploader != it.Owner {
		f.Uploader, f.ByWhich = it.Uploader, it.ByWhich
	}
	return s.finish(ctx, it, f)
}

// recount counts a session's notices in the hour and the day of its completion
// too, before anything changes: else those of a week could come on one day. The
// session remembers it, so that to complete it once more counts nothing more.
func (s *Service) recount(ctx context.Context, it *Session) error {
	now := s.Now()
	counter := limits.Counter{Table: s.Table, Now: func() time.Time { return now }, Most: s.Notices}
	last := time.UnixMilli(cmp.Or(it.Counted, it.Created))
	mark := table.Update(sessionKey(it.ID)).Set("counted", now.UnixMilli()).
		If(table.Equal("done", false), table.AtMost("counted", it.Counted))
	err := counter.TakeAgain(ctx, last, mark, it.Uploader, Sending{it.Notices, it.Receipt}.to()...)
	if errors.Is(err, table.ErrCondition) {
		return nil // another request has counted them, or completed or ended the session
	}
	if err == nil {
		it.Counted = now.UnixMilli()
	}
	return err
}

// finish is the transaction that makes a session a file.
func (s *Service) finish(ctx context.Context, it Session, f File) (Listed, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	done := it
	done.Done, done.Notices, done.Receipt, done.Hashed, done.Hash = true, nil, Receipt{}, 0, nil
	ops, err := s.appear(ctx, &f, Sending{it.Notices, it.Receipt})
	if err != nil {
		return Listed{}, err
	}
	ops = append(ops,
		table.Put(sessionKey(it.ID), done).If(table.Equal("done", false)).Expire(it.gone()),
		table.Delete(it.indexKey()))
	ops = append(ops, s.reservation(it).settle([]File{f})...)
	err = s.Table.Write(ctx, ops...)
	if errors.Is(err, table.ErrCondition) {
		return s.overtaken(ctx, it, &fault.Error{Kind: fault.Conflict, Detail: "the upload was ended, or its user removed", Cause: err})
	}
	if err != nil {
		return Listed{}, fmt.Errorf("storing the record: %w", err)
	}
	s.endParts(ctx, it)
	return s.Listed(f), nil
}

// overtaken answers for a session that another request has completed, or else
// with a fault.
func (s *Service) overtaken(ctx context.Context, it Session, otherwise error) (Listed, error) {
	now, err := s.session(ctx, it.ID)
	if fault.Is(err, fault.NotFound) { // ended: nothing will name its object
		s.discard(ctx, blob.Files, it.blobKey())
		return Listed{}, otherwise
	}
	if err != nil {
		return Listed{}, err
	}
	if !now.Done {
		return Listed{}, otherwise
	}
	return s.completed(ctx, now)
}

func (s *Service) completed(ctx context.Context, it Session) (Listed, error) {
	f, err := s.get(ctx, blob.Files, it.Owner, it.FileID)
	return s.Listed(f), err
}

func completeFault(err error) error {
	var missing *blob.MissingError
	if errors.As(err, &missing) {
		return &fault.Error{Kind: fault.Invalid, Cause: err, Detail: fmt.Sprintf("parts are missing: %s ...", strings.Trim(fmt.Sprint(missing.Numbers), "[]"))}
	}
	return sumFault(err, "the file")
}

// checkHash compares the stated SHA-256 with the object's. One request reads
// only so much of it, keeps how far it came with the session, and has the
// caller ask again: there is no size at which the answer comes too late.
func (s *Service) checkHash(ctx context.Context, it Session) error {
	if it.SHA256 == nil {
		return nil
	}
	sum, err := hashOf(it)
	if err != nil {
		return err
	}
	n, err := s.hashMore(ctx, it, sum)
	if err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	if it.Hashed += n; it.Hashed < it.Length {
		return s.keepHash(ctx, it, sum)
	}
	if got := sum.Sum(nil); !bytes.Equal(got, it.SHA256) {
		if err := s.endWrong(ctx, it); err != nil {
			return err
		}
		return fault.New(fault.Invalid, "the SHA-256 of the file is %x, stated was %x; begin the upload anew", got, it.SHA256)
	}
	return nil
}

// hashOf is the hash as far as an earlier request came.
func hashOf(it Session) (hash.Hash, error) {
	sum := sha256.New()
	if it.Hashed == 0 {
		return sum, nil
	}
	if err := sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(it.Hash); err != nil {
		return nil, fmt.Errorf("going on with a SHA-256: %w", err)
	}
	return sum, nil
}

func (s *Service) hashMore(ctx context.Context, it Session, sum hash.Hash) (int64, error) {
	r, err := s.Blobs.Open(ctx, blob.Files, it.blobKey())
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if _, err := r.Seek(it.Hashed, io.SeekStart); err != nil {
		return 0, err
	}
	part := io.LimitReader(r, cmp.Or(s.HashStep, hashStep))
	return io.CopyBuffer(sum, struct{ io.Reader }{part}, make([]byte, 256<<10))
}

// keepHash records how far a hash has come, and asks the caller to come again.
func (s *Service) keepHash(ctx context.Context, it Session, sum hash.Hash) (err error) {
	if it.Hash, err = sum.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return fmt.Errorf("keeping a SHA-256: %w", err)
	}
	err = s.Table.Write(ctx, table.Put(sessionKey(it.ID), it).If(table.Equal("done", false)).Expire(it.gone()))
	if err != nil && !errors.Is(err, table.ErrCondition) { // another request was quicker, or ended it
		return fmt.Errorf("storing an upload session: %w", err)
	}
	return &fault.Error{Kind: fault.Unavailable, After: time.Second,
		Detail: fmt.Sprintf("the SHA-256 is being compared, %d of %d bytes so far; complete the upload again to go on", it.Hashed, it.Length)}
}

// endWrong ends the session first: if that fails, a repetition still finds the
// object to compare.
func (s *Service) endWrong(ctx context.Context, it Session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	if err := s.EndSession(ctx, it); err != nil && !fault.Is(err, fault.Conflict) { // another complete has ended it
		return err
	}
	s.discard(ctx, blob.Files, it.blobKey())
	return nil
}

// EndSession removes a session that is not done, and its parts: these first if
// there is no room to write otherwise, as it may be they that take it.
func (s *Service) EndSession(ctx context.Context, it Session) error {
	if it.Done {
		return errDone()
	}
	err := s.endRecord(ctx, it)
	if errors.Is(err, table.ErrFull) {
		s.endParts(ctx, it)
		err = s.endRecord(ctx, it)
	}
	if errors.Is(err, table.ErrCondition) {
		return errDone()
	}
	if err != nil {
		return fmt.Errorf("ending an upload session: %w", err)
	}
	s.endParts(ctx, it)
	return nil
}

func (s *Service) endRecord(ctx context.Context, it Session) error {
	ops := []table.Op{table.Delete(sessionKey(it.ID)).If(table.Equal("done", false)), table.Delete(it.indexKey())}
	err := s.Table.Write(ctx, slices.Concat(ops, s.reservation(it).settle(nil))...)
	if errors.Is(err, table.ErrCondition) { // the reservation may be gone, or the session
		err = s.Table.Write(ctx, ops...)
	}
	return err
}

// reservation is what the session holds of its owner's quota; nil if nothing.
func (s *Service) reservation(it Session) *reservation {
	if it.Reserved == "" {
		return nil
	}
	return &reservation{
		s: s, owner: it.Owner, own: it.Owner == it.Uploader, bytes: it.Length,
		key: table.Key{PK: reservations(it.Owner), SK: it.Reserved},
	}
}

// Awaits reports whether an object without a record may still get one, because
// it is that of a session which was completed and has to be so once more.
func (s *Service) Awaits(ctx context.Context, key string) (bool, error) {
	_, id, _ := strings.Cut(key, "/")
	it, err := s.session(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && !it.Done, err
}
