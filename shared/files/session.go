package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
	"ferry/shared/users"
)

const (
	// SessionLife is how long an upload session stays open.
	SessionLife = 7 * 24 * time.Hour
	// sessionMemory is how long the record of a session is kept after it
	// expires, so that the answer can say so. Then the store sweeps its parts.
	sessionMemory = blob.PartsLife - SessionLife
	// streamedPartSize is the size of parts if the length is not known yet.
	streamedPartSize = 64 << 20
	// usualPartSize is large enough to use a connection well, and small enough
	// to send again after a failure.
	usualPartSize = 16 << 20
	// hashStep is how many bytes of a file one request hashes: what a Lambda
	// function reads in a few seconds.
	hashStep = 512 << 20
)

// Plan describes the upload of a new session.
type Plan struct {
	Owner    string `json:"owner"` // a canonical name
	Name     string `json:"name"`
	Type     string `json:"type,omitempty"`
	Length   int64  `json:"length"` // -1 until Complete if Streamed
	Streamed bool   `json:"streamed,omitempty"`
	PartSize int64  `json:"partSize"` // the client's wish, or 0; in a Session the size in use
	SHA256   []byte `json:"sha256,omitempty"`
	Bundle   bool   `json:"bundle,omitempty"` // see package bundle
	Files    int64  `json:"files,omitempty"`  // how many the bundle has; 0 if not known
	Token    string `json:"token,omitempty"`  // id of the API token that began it, if limited to its own sessions
	Sending
}

// Session is an upload that arrives in parts. The store knows which parts have
// arrived; the rest is here.
type Session struct {
	Plan
	By
	V             int64  `json:"v"`
	ID            string `json:"id"`                    // also a part of its object's key
	Blob          string `json:"blob,omitempty"`        // that key
	Incarnation   int64  `json:"incarnation,omitempty"` // of the owner
	Counted       int64  `json:"counted,omitempty"`     // Unix milliseconds, when notices were counted after Created
	Upload        string `json:"upload"`                // the store's name for the upload
	FileID        int64  `json:"fileId"`
	Reserved      string `json:"reserved,omitempty"`      // sort key of the reservation, if the owner has a quota
	ReservedUntil int64  `json:"reservedUntil,omitempty"` // Unix seconds
	Created       int64  `json:"created"`                 // Unix milliseconds
	Expires       int64  `json:"expires"`                 // Unix seconds
	Done          bool   `json:"done"`
	Hashed        int64  `json:"hashed,omitempty"` // how many bytes of the object Hash covers
	Hash          []byte `json:"hash,omitempty"`   // the state of crypto/sha256
}

// stated returns the length that was stated when the session began, or 0.
func (p Plan) stated() int64 {
	if p.Streamed {
		return 0
	}
	return p.Length
}

// State sets the length of a streamed session, for one request. A length that does not
// fit the session is an Invalid fault.
func (s *Service) State(sess *Session, length *int64) error {
	if length == nil {
		return nil
	}
	most := s.Parts.Limits()
	l := blob.Layout{Length: *length, PartSize: sess.PartSize}
	if *length < 0 || l.Check(most) != nil || sess.Length >= 0 && sess.Length != *length {
		return fault.Parameter("length",
			"length differs from the session's, or needs more than %d parts of %d bytes", most.MaxParts, sess.PartSize)
	}
	if sess.Length < 0 {
		sess.Length = *length
		sess.ReservedUntil = 0 // nothing is reserved for this length yet
	}
	return nil
}

// forgotten returns when the record of the session is dropped.
func (s Session) forgotten() time.Time { return time.Unix(s.Expires, 0).Add(sessionMemory) }

// Layout says how the file of a session is divided into parts.
func (s *Service) Layout(sess Session) blob.Layout {
	return blob.Layout{
		Length:   sess.Length,
		PartSize: sess.PartSize,
		MaxParts: s.Parts.Limits().MaxParts,
	}
}

func sessionKey(id string) table.Key { return table.Key{PK: "upload#" + id, SK: "upload"} }

// indexed returns an operation for each user who sees the session in the list, which
// is sorted by the time of creation: the uploader, and the owner.
func (s Session) indexed(op func(table.Key) table.Op) (ops []table.Op) {
	for _, list := range slices.Compact([]string{SessionsOf(s.By), sessions(s.Owner)}) {
		ops = append(ops, op(table.Key{PK: list, SK: fmt.Sprintf("%016d-%s", s.Created, s.ID)}))
	}
	return ops
}

// SessionsOf returns the partition that lists the open sessions of a user, or of all guests of a
// request.
func SessionsOf(by By) string {
	if by.Request != "" {
		return sessions("request:" + by.Request) // no user's name has a colon
	}
	return sessions(by.User)
}

func sessions(user string) string { return "uploads#" + user }

// seenBy reports whether a caller began the session, or the file goes to the caller's area.
func (s Session) seenBy(by By) bool { return s.By.same(by) || by.is(s.Owner, s.Incarnation) }

// own reports whether the file goes to the area of the user who began the session.
func (s Session) own() bool { return s.By.User == s.Owner }

// PartSize returns the size of a file's parts within a store's limits: the client's wish if
// possible, rounded up to whole MiB.
func PartSize(most blob.Limits, length, wish int64) int64 {
	const mib = 1 << 20
	if wish <= 0 {
		wish = usualPartSize
	}
	parts := int64(most.MaxParts)
	least := (length + parts - 1) / parts
	size := (max(wish, least, most.MinPart) + mib - 1) / mib * mib
	return min(size, most.MaxPart)
}

// BeginSession opens a session. It makes three calls: for the file's id, the
// store's session, and the record. It makes one more if there are recipients,
// whose notices count from now on, and one more if the owner has a quota: room
// is reserved for an hour, see holdRoom.
func (s *Service) BeginSession(
	ctx context.Context,
	by By,
	p Plan,
	hold *Hold,
) (Session, error) {
	u := &Upload{s: s, owner: p.Owner, by: by, sending: p.Sending, max: p.stated()}
	if err := u.begin(ctx, u.reserve); err != nil {
		return Session{}, err
	}
	expires, _ := s.wanted(p.Expiry, s.Now(), u.target)
	key, err := s.blobKey(p.Owner, u.id, expires)
	if err != nil {
		u.Abort(ctx)
		return Session{}, err
	}
	now := s.Now()
	k, _ := parseKey(key)
	sess := Session{
		Plan:        p,
		By:          by,
		V:           table.Format,
		ID:          k.session,
		Blob:        key,
		FileID:      u.id,
		Incarnation: u.maxIncarnation,
		Created:     now.UnixMilli(),
		Expires:     now.Add(SessionLife).Unix(),
	}
	sess.PartSize = PartSize(s.Parts.Limits(), p.Length, p.PartSize)
	if p.Streamed && p.PartSize == 0 {
		sess.PartSize = streamedPartSize
	}
	if u.reserved != nil {
		sess.Reserved, sess.ReservedUntil = u.reserved.key.SK, now.Add(sessionHold).Unix()
	}
	if sess.Upload, err = s.Parts.Begin(ctx, blob.Files, key, s.Layout(sess)); err != nil {
		u.Abort(ctx)
		return Session{}, fmt.Errorf("beginning an upload: %w", err)
	}
	ops := append(hold.Done(sess.ID),
		table.Put(sessionKey(sess.ID), sess).If(table.NotExists()).Expire(sess.forgotten()))
	ops = append(ops, sess.indexed(func(k table.Key) table.Op {
		return table.Put(k, sess).Expire(sess.forgotten())
	})...)
	err = s.bounded(ctx, sess.Owner, by, Taking{Begun: &sess}, func(more []table.Op) (int, error) {
		return len(ops), s.open(ctx, sess, slices.Concat(ops, more))
	})
	if refused(err) {
		u.Abort(ctx)
		s.endParts(ctx, sess)
	}
	if lost := hold.Lost(err); fault.Is(lost, fault.Conflict) {
		return Session{}, lost
	}
	return sess, fault.Wrap(err, "storing an upload session")
}

// upload returns the store's side of a session.
func (s *Service) upload(sess Session) blob.Upload {
	return s.Parts.Upload(blob.Files, sess.Blob, sess.Upload, s.Layout(sess))
}

// endParts removes the parts of a session from the store. If that fails, they
// are swept later.
func (s *Service) endParts(ctx context.Context, sess Session) {
	ctx, cancel := cleaning(ctx)
	defer cancel()
	_ = s.upload(sess).Abort(ctx)
}

func errNoSession() error {
	return fault.New(fault.NotFound, "no upload session with that id")
}

// Session returns a session that this user began or, if own is false, one whose file goes to this
// user's area. It makes one call to the table.
func (s *Service) Session(ctx context.Context, by By, id string, own bool) (Session, error) {
	sess, err := s.session(ctx, id)
	if err == nil && !sess.By.same(by) && (own || !sess.seenBy(by)) {
		return Session{}, errNoSession()
	}
	return sess, err
}

// session returns a session that is open or done.
func (s *Service) session(ctx context.Context, id string) (sess Session, err error) {
	if len(id) > 64 {
		return sess, errNoSession()
	}
	err = s.Table.Get(ctx, sessionKey(id), &sess)
	switch {
	case errors.Is(err, table.ErrNotFound):
		return sess, errNoSession()
	case err != nil:
		return sess, fmt.Errorf("reading an upload session: %w", err)
	case !sess.Done && table.Ended(s.Now(), sess.Expires, SessionLife):
		return sess, fault.New(fault.NotFound, "the upload session has expired")
	}
	return sess, nil
}

// Sessions returns a page of the open sessions that a user began, or that bring files
// to the user's area, newest first. next is where to continue, or empty on the last
// page.
func (s *Service) Sessions(
	ctx context.Context,
	by By,
	after string,
	limit int,
) (page []Session, next string, err error) {
	found, err := s.Table.Query(ctx, table.Query{
		PK:         SessionsOf(by),
		Descending: true,
		After:      after,
		Limit:      limit,
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing upload sessions: %w", err)
	}
	for _, item := range found.Items {
		var sess Session
		if err := item.Decode(&sess); err != nil {
			s.unreadable(ctx, item.Key, err)
		} else if !table.Ended(s.Now(), sess.Expires, SessionLife) && sess.seenBy(by) {
			page = append(page, sess)
		}
		if found.More {
			next = item.Key.SK
		}
	}
	return page, next, nil
}

// ArrivedParts lists the parts that have arrived, with one call for each 1,000.
// A session that is done has none, as they have become a file.
func (s *Service) ArrivedParts(ctx context.Context, sess Session) ([]blob.Part, error) {
	if sess.Done {
		return nil, nil
	}
	parts, err := s.upload(sess).List(ctx)
	if errors.Is(err, blob.ErrNoUpload) {
		return nil, nil // the session is being completed or ended
	}
	return parts, fault.Wrap(err, "listing parts")
}

// SignPart returns a signed request that sends a part straight to the store, or
// blob.ErrUnsupported if the part has to go through this process.
func (s *Service) SignPart(
	ctx context.Context, sess Session, number int, sum *uint64, life time.Duration,
) (blob.SignedPart, error) {
	return s.upload(sess).Sign(ctx, number, sum, life)
}

// Receiving returns a session for a request that brings a part and has no login. It
// makes two calls to the table, as the uploader may have been disabled since the
// request was signed, and up to two more for a guest.
func (s *Service) Receiving(ctx context.Context, id string) (Session, error) {
	sess, err := s.session(ctx, id)
	if err != nil {
		return sess, err
	}
	if sess.Done {
		return sess, errDone()
	}
	u, err := s.user(ctx, cmp.Or(sess.By.User, sess.Owner))
	if err != nil {
		return sess, err
	}
	if u.State != users.Active || sess.By.UserIncarnation != u.Incarnation {
		return sess, fault.New(
			fault.Forbidden, "the user who began this upload was disabled or removed",
		)
	}
	if sess.By.Request != "" { // the request may have ended
		_, err = s.Links.Admit(ctx, sess.Owner, sess.By, Taking{Of: sess.ID})
	}
	return sess, err
}

// WritePart stores a part of a session that Receiving returned.
func (s *Service) WritePart(
	ctx context.Context, sess Session, number int, r io.Reader, sum *uint64,
) (blob.Part, error) {
	if err := s.Layout(sess).CheckNumber(number); err != nil {
		return blob.Part{}, fault.New(fault.Invalid, "the file has parts 1 to %d",
			s.Layout(sess).Count())
	}
	part, err := s.upload(sess).Write(ctx, number, r, sum)
	switch {
	case errors.Is(err, blob.ErrLength):
		return part, &fault.Fault{
			Kind:  fault.Invalid,
			Cause: err,
			Detail: fmt.Sprintf(
				"part %d must have %d bytes, but fewer or more were sent",
				number,
				s.Layout(sess).
					Size(number),
			),
		}
	case errors.Is(err, blob.ErrSuperseded):
		return part, &fault.Fault{
			Kind:   fault.Conflict,
			Detail: "the part is being sent a second time",
			Cause:  err,
		}
	case errors.Is(err, blob.ErrNoUpload):
		return part, errNoSession()
	}
	return part, sumFault(err, fmt.Sprintf("part %d", number))
}

func errDone() error { return fault.New(fault.Conflict, "the upload is complete") }

// sumFault turns the store's error into a fault if a checksum was wrong.
func sumFault(err error, what string) error {
	if sum, ok := errors.AsType[*blob.SumError](err); ok {
		return &fault.Fault{
			Kind:  fault.Invalid,
			Cause: err,
			Detail: fmt.Sprintf("the CRC64NVME of %s is %016x, but %016x was stated",
				what, sum.Got, sum.Stated),
		}
	}
	return err
}

// EndSession removes a session that is not done, and its parts. If the disk is
// full it removes the parts first, as they may be what fills it.
func (s *Service) EndSession(ctx context.Context, sess Session) error {
	if sess.Done {
		return errDone()
	}
	err := s.endRecord(ctx, sess)
	if errors.Is(err, table.ErrFull) {
		s.endParts(ctx, sess)
		err = s.endRecord(ctx, sess)
	}
	if errors.Is(err, table.ErrCondition) {
		return errDone()
	}
	if err != nil {
		return fmt.Errorf("ending an upload session: %w", err)
	}
	s.endParts(ctx, sess)
	return nil
}

func (s *Service) endRecord(ctx context.Context, sess Session) error {
	ops := slices.Concat(sess.indexed(table.Delete), []table.Op{sess.opened(-1)})
	ops = append(ops, table.Delete(sessionKey(sess.ID)).If(table.Equal("done", false)))
	err := s.Table.Write(ctx, slices.Concat(ops, sess.reservation().charge(0))...)
	if errors.Is(err, table.ErrCondition) { // the reservation or the session no longer exists
		err = s.Table.Write(ctx, ops...)
	}
	return err
}

// reservation returns what the session reserves of its owner's quota, or nil.
func (s Session) reservation() *reservation {
	if s.Reserved == "" {
		return nil
	}
	r := &reservation{
		owner: s.Owner,
		bytes: max(s.Length, 0),
		key:   table.Key{PK: reservations(s.Owner), SK: s.Reserved},
	}
	if s.Streamed && s.Length >= 0 {
		r.key.SK += fmt.Sprintf("-%d", s.Length) // besides the empty one made at the start
	}
	return r
}

// Expect prepares a session for parts up to a number: it holds their room, and notes the length of
// a session that began without one, if that is known now. It makes the calls of checkRoom, and one more to
// renew the reservation.
func (s *Service) Expect(ctx context.Context, sess *Session, length *int64, last int) error {
	if sess.Done {
		return errDone()
	}
	if err := s.holdRoom(ctx, sess); err != nil {
		return err
	}
	if err := s.State(sess, length); err != nil {
		return err
	}
	return s.checkRoom(ctx, *sess, min(last, s.Layout(*sess).Count()))
}

// holdRoom renews the session's reservation for an hour, if less than half of that is left, and
// reserves the room again if it has lapsed. If no room is left, the fault is TooLarge; the parts
// stay. It makes no call if there is nothing to renew.
func (s *Service) holdRoom(ctx context.Context, sess *Session) error {
	r, now := sess.reservation(), s.Now()
	left := time.Unix(sess.ReservedUntil, 0).Sub(now)
	if r == nil || left > sessionHold/2 && left <= sessionHold {
		return nil
	}
	until := now.Add(sessionHold)
	mark := table.Update(sessionKey(sess.ID)).
		Set("reservedUntil", until.Unix()).
		If(table.Equal("done", false))
	err := s.Table.Write(ctx, mark, table.Update(r.key).
		Set("expires", until.Unix()).
		If(table.Exists()))
	if lapsed, ok := errors.AsType[*table.ConditionError](err); ok && lapsed.Op == 1 {
		err = s.reserveAgain(ctx, sess, r, until, mark)
	}
	if errors.Is(err, table.ErrCondition) {
		return &fault.Fault{
			Kind:   fault.Conflict,
			Detail: "the upload was completed or ended",
			Cause:  err,
		}
	}
	sess.ReservedUntil = until.Unix()
	return fault.Wrap(err, "reserving room")
}

func (s *Service) reserveAgain(
	ctx context.Context, sess *Session, r *reservation, until time.Time, mark table.Op,
) error {
	owner, err := s.user(ctx, sess.Owner)
	switch {
	case err != nil:
		return err
	case owner.Name == "" || owner.Incarnation != sess.Incarnation:
		return errNoDestination()
	case owner.Quota == 0: // the quota was lifted
		sess.Reserved = ""
		return nil
	}
	freed, err := s.take(ctx, owner, r, until, mark)
	refused, _ := errors.AsType[*table.ConditionError](err)
	switch {
	case refused != nil && refused.Op == 0: // another request has just done it
		return nil
	case refused != nil && refused.Op == 2: // the session is no longer open
		return err
	case errors.Is(err, table.ErrCondition):
		return errQuota(sess.own(), owner.Quota-owner.Used+freed)
	}
	return err
}

// checkRoom returns a TooLarge fault if a streamed session grows beyond its owner's quota, or
// beyond what its request takes. The room itself is taken when the session is completed and its
// length is known. It makes calls only for a streamed session: one if its owner has a quota, and up to
// two if a guest sends it.
func (s *Service) checkRoom(ctx context.Context, sess Session, number int) error {
	if !sess.Streamed {
		return nil
	}
	l := s.Layout(sess)
	bytes := l.Offset(number) + l.Size(number)
	if sess.By.Request != "" {
		taking := Taking{Files: []File{{Length: bytes}}, Of: sess.ID}
		if _, err := s.Links.Admit(ctx, sess.Owner, sess.By, taking); err != nil {
			return err
		}
	}
	if sess.Reserved == "" {
		return nil
	}
	owner, err := s.user(ctx, sess.Owner)
	if err != nil {
		return err
	}
	left := owner.Quota - owner.Used
	switch {
	case owner.Name == "":
		return errNoDestination()
	case owner.Quota > 0 && bytes > left:
		return errQuota(sess.own(), left)
	}
	return nil
}

// inSession reports whether an object without a record belongs to a session. If the session is
// open, the record is written when the client completes it again. If it is done, the record may
// have been written since it was looked for; a real leftover stays until the session is
// forgotten.
func (s *Service) inSession(ctx context.Context, key string) (bool, error) {
	k, _ := parseKey(key)
	_, err := s.session(ctx, k.session)
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil
	case errors.Is(err, table.ErrUnreadable): // it may be open
		return true, nil
	}
	return err == nil, err
}
