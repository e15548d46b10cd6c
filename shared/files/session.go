package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/table"
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
	V           int64     `json:"v"`
	ID          string    `json:"id"` // as the name in the key of its object
	Owner       string    `json:"owner"`
	Incarnation int64     `json:"incarnation,omitempty"` // the owner's
	Uploader    string    `json:"uploader"`
	ByWhich     int64     `json:"byWhich,omitempty"` // the uploader's incarnation
	Name        string    `json:"name"`
	Type        string    `json:"type,omitempty"`
	Length      int64     `json:"length"`
	PartSize    int64     `json:"partSize"`
	SHA256      []byte    `json:"sha256,omitempty"`
	Notices     []Message `json:"notices,omitempty"`
	Counted     int64     `json:"counted,omitempty"` // Unix milliseconds: when these counted again, after Created
	Receipt     Receipt   `json:"receipt"`
	Upload      string    `json:"upload"` // the store's name for it
	FileID      int64     `json:"fileId"`
	Reserved    string    `json:"reserved,omitempty"` // of the owner's quota
	Created     int64     `json:"created"`            // Unix milliseconds
	Expires     int64     `json:"expires"`            // Unix seconds
	Done        bool      `json:"done"`
	Hashed      int64     `json:"hashed,omitempty"` // bytes of the object whose SHA-256 is Hash
	Hash        []byte    `json:"hash,omitempty"`   // the state of crypto/sha256
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
func (s *Service) BeginSession(ctx context.Context, uploader auth.User, p Plan, claim *Claim) (Session, error) {
	u := &Upload{
		s: s, owner: p.Owner, uploader: uploader, sending: p.Sending, max: p.Length, life: SessionLife + sessionMemory,
	}
	if err := u.begin(ctx); err != nil {
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
	if lost := claim.Lost(err); envelope.IsFault(lost, envelope.Conflict) {
		return Session{}, lost
	}
	return it, envelope.Wrap(err, "storing an upload session")
}

// endParts removes what the store keeps of a session; what remains is swept.
func (s *Service) endParts(ctx context.Context, it Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	_ = s.Parts.AbortParts(ctx, blob.Files, it.blobKey(), it.Upload)
}

func errNoSession() error {
	return envelope.NewFault(envelope.NotFound, "no upload session of that id")
}

// Session returns the session that this user has begun. One call.
func (s *Service) Session(ctx context.Context, u auth.User, id string) (Session, error) {
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
		return it, envelope.NewFault(envelope.NotFound, "the upload session has expired")
	}
	return it, nil
}

// Sessions is a page of a user's open sessions, newest first. Next is what to
// continue after, empty if there is nothing more.
func (s *Service) Sessions(ctx context.Context, u auth.User, after string, limit int) (page []Session, next string, err error) {
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
	return parts, envelope.Wrap(err, "listing parts")
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
		return blob.Part{}, envelope.NewFault(envelope.Invalid, "the file has parts 1 to %d", it.Layout().Count())
	}
	part, err := s.Parts.WritePart(ctx, blob.Files, it.blobKey(), it.Upload, it.Layout(), number, r, sum)
	switch {
	case errors.Is(err, blob.ErrLength):
		return part, &envelope.Fault{Kind: envelope.Invalid, Cause: err,
			Detail: fmt.Sprintf("part %d has %d bytes, and other than that were sent", number, it.Layout().Size(number))}
	case errors.Is(err, blob.ErrSuperseded):
		return part, &envelope.Fault{Kind: envelope.Conflict, Detail: "the part is being sent a second time", Cause: err}
	case errors.Is(err, blob.ErrNoUpload):
		return part, errNoSession()
	}
	return part, sumFault(err, fmt.Sprintf("part %d", number))
}

func errDone() error { return envelope.NewFault(envelope.Conflict, "the upload is complete") }

// sumFault tells a checksum that is wrong.
func sumFault(err error, what string) error {
	if sum, ok := errors.AsType[*blob.SumError](err); ok {
		return &envelope.Fault{Kind: envelope.Invalid, Cause: err,
			Detail: fmt.Sprintf("the CRC64NVME of %s is %016x, stated was %016x", what, sum.Got, sum.Stated)}
	}
	return err
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
	err := s.Table.Write(ctx, slices.Concat(ops, s.reservation(it).charge(nil))...)
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
	if envelope.IsFault(err, envelope.NotFound) {
		return false, nil
	}
	return err == nil && !it.Done, err
}
