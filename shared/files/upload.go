package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
	"ferry/shared/users"
)

// MaxFiles is the most files in one upload without recipients; see also
// Sending.MaxFiles. MaxRecipients is the most recipients of an upload.
const MaxFiles, MaxRecipients = 20, 20

const (
	// opsPerFile counts the record, its link, an event, and the receipt that waits for the first
	// download. opsPerRecipient counts a link and a notice.
	opsPerFile, opsPerRecipient = 4, 2
	// opsPerUpload counts one for a hold and one for a quota.
	opsPerUpload = 2
)

// Sending says who is told about the files of an upload, and what limits them and their links.
type Sending struct {
	Expiry
	Options              // of each link
	Recipients []Message `json:"notices,omitempty"` // all differ; each is sent for each file, with a link of its own
	Tell       Contact   `json:"receipt"`           // who gets a receipt of each file's first download, if anybody
}

// Options limit a link. The zero Options set no limit.
type Options struct {
	Limit    int64  `json:"limit,omitempty"`    // how many downloads it allows; 0 is no limit
	Password string `json:"password,omitempty"` // its hash; empty if it needs none
}

// Contact says where and how to write to somebody.
type Contact struct {
	To   string `json:"to,omitempty"` // an e-mail address; empty if nobody wants to be told
	Lang string `json:"lang,omitempty"`
	Base string `json:"base,omitempty"` // the service's address
}

// MaxFiles returns the most files in one upload whose items all fit into one transaction.
func (s Sending) MaxFiles() int {
	return min(
		MaxFiles,
		(table.MaxOps-opsPerUpload)/(opsPerFile+opsPerRecipient*len(s.Recipients)),
	)
}

// Addresses returns the addresses and numbers of recipients.
func Addresses(to []Message) []string {
	all := make([]string, len(to))
	for i, m := range to {
		all[i] = m.To
	}
	return all
}

// cleanupTimeout bounds the work that must be done even when a request has
// ended: its commit, and clearing up after a failure.
const cleanupTimeout = 20 * time.Second

// cleaning returns a context for that work.
func cleaning(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}

// Part is one file of an upload.
type Part struct {
	Name   string
	Type   string // media type, as stated by the sender
	Body   io.Reader
	Size   int64  // bytes, or -1 if unknown
	SHA256 []byte // as stated by the sender, or nil
	// Contents says what is in a bundle, once Body was read; nil for any other file.
	Contents *Contents
}

// Upload receives the files of one request. Until Commit makes them visible, all
// at once, none can be seen. It is for one goroutine.
type Upload struct {
	// Hold, if set, makes the commit remember its result, for Repeat.
	Hold *Hold

	s              *Service
	owner          string
	by             By
	sending        Sending
	max            int64        // most bytes in the request; -1 is unbounded
	left           int64        // bytes that may still come, if the owner has a quota
	reserved       *reservation // of a session whose owner has a quota
	target         users.User   // the owner
	read           time.Time    // when target was read
	maxIncarnation int64        // the latest incarnation of the owner that may get the files
	id             int64        // taken but not used yet, or 0
	stored         []File
	counted        []time.Time // when the notices of each file were counted
}

// Begin starts an upload into the area of owner, a canonical name. It counts
// the notices of the first file, takes its id and, if the owner has a quota,
// checks the room. max is the most bytes that the request can bring, or -1 if it
// does not say.
//
// If the owner does not exist, the fault is Invalid, or Unauthorized if the
// owner is the uploader. If the uploader or a recipient has reached the limit
// of notices, it is TooMany.
func (s *Service) Begin(
	ctx context.Context,
	owner string,
	by By,
	max int64,
	sending Sending,
) (*Upload, error) {
	u := &Upload{s: s, owner: owner, by: by, max: max, sending: sending}
	return u, u.begin(ctx, u.checkRoom)
}

// begin does the work of Begin, with room under a quota. Another user's area may have
// been recreated meanwhile; the uploader's own must be that of the user who logged in.
func (u *Upload) begin(ctx context.Context, room func(context.Context) error) error {
	u.maxIncarnation = math.MaxInt64
	if u.own() || u.by.Request != "" {
		u.maxIncarnation = u.by.UserIncarnation
	}
	err := u.takeID(ctx)
	if err == nil {
		_, err = u.s.wanted(u.sending.Expiry, u.s.Now(), u.target)
	}
	if err == nil && u.target.Quota > 0 {
		err = room(ctx)
	}
	if err != nil {
		u.Abort(ctx)
	}
	return err
}

// Add stores the bytes of a part. It makes one call to the store. For each part
// after the first it also makes one to the table for an id, and one more if
// there are recipients.
func (u *Upload) Add(ctx context.Context, p Part) error {
	if most := u.sending.MaxFiles(); len(u.stored) == most {
		return fault.New(fault.Invalid, "one request with %d recipients takes at most %d files",
			len(u.sending.Recipients), most)
	}
	if u.id == 0 {
		if err := u.takeID(ctx); err != nil {
			return err
		}
	}
	id := u.id
	u.id = 0
	expires, _ := u.s.wanted(u.sending.Expiry, u.s.Now(), u.target)
	key, err := u.s.blobKey(u.owner, id, expires)
	if err != nil {
		return err
	}
	body := &blob.Body{R: p.Body, Size: p.Size, SHA256: p.SHA256}
	if u.target.Quota > 0 {
		body.Left = &u.left
	}
	written, err := u.s.Blobs.Create(ctx, blob.Files, key, body, p.Size)
	if errors.Is(err, blob.ErrTooLong) {
		return errQuota(u.own(), u.room())
	}
	if err != nil {
		return bodyFault(err)
	}
	f := File{ID: id, Name: p.Name, Type: p.Type, SHA256: p.SHA256, Blob: key, By: u.by}
	if p.Contents != nil {
		f.Contents = *p.Contents
	}
	u.stored = append(u.stored, u.s.newRecord(f, written, u.target, u.sending.Expiry))
	return nil
}

// newRecord completes the record of a file whose bytes are in the store.
func (s *Service) newRecord(f File, written blob.Written, owner users.User, wish Expiry) File {
	f.V = table.Format
	f.Owner = owner.Name
	f.Incarnation = owner.Incarnation
	f.Area = blob.Files
	f.Length, f.CRC64 = written.Size, fmt.Sprintf("%016x", written.CRC64NVME)
	now := s.Now()
	f.Modified = now.UnixMilli()
	f.Expires, _ = s.wanted(wish, now, owner) // a wish beyond the retention was refused before
	return f
}

// own reports whether the files go to the uploader's own area.
func (u *Upload) own() bool { return u.by.User == u.owner }

// bodyFault turns the store's error into a fault if the body is to blame.
func bodyFault(err error) error {
	var digest *blob.DigestError
	switch {
	case errors.Is(err, blob.ErrLength):
		return &fault.Fault{
			Kind:   fault.Invalid,
			Detail: "the body's length is not the stated one",
			Cause:  err,
		}
	case errors.As(err, &digest):
		return fault.New(fault.Invalid, "the SHA-256 of the body is %x, but %x was stated",
			digest.Got, digest.Stated)
	}
	return fmt.Errorf("storing a file: %w", err)
}

// takeID counts the notices of one file against the limits, and takes the owner's next
// file id. It makes one call to the table, and one more if there are notices. The write
// need not be durable: the later write of the record that uses the id makes both
// durable. All ids of an upload come from one incarnation of the owner.
func (u *Upload) takeID(ctx context.Context) error {
	at, err := u.s.Outbox.Reserve(ctx, u.by, Addresses(u.sending.Recipients), time.Time{})
	if err != nil {
		return err
	}
	u.counted = append(u.counted, at)
	op := table.Update(users.Key(u.owner)).
		Add("lastFile", 1).
		If(table.Exists(), table.AtMost("incarnation", u.maxIncarnation))
	u.read = u.s.Now()
	err = u.s.Table.Update(ctx, op.Relax(), &u.target)
	if errors.Is(err, table.ErrCondition) || err == nil && u.target.State == users.Disabled {
		if u.own() || u.by.Request != "" {
			return fault.New(fault.Unauthorized, "the user has just been disabled or removed")
		}
		return fault.Parameter("d", "the parameter d is not a user name")
	}
	if err != nil {
		return u.s.badOwner(ctx, u.owner, fmt.Errorf("taking a file id: %w", err))
	}
	u.id, u.maxIncarnation = u.target.LastFile, u.target.Incarnation
	return nil
}

// badOwner returns a Conflict fault instead of err if the user who gets a file cannot be read.
func (s *Service) badOwner(ctx context.Context, name string, err error) error {
	if _, bad := s.user(ctx, name); errors.Is(bad, table.ErrUnreadable) {
		s.unreadable(ctx, users.Key(name), bad)
		return fault.New(fault.Conflict, "the account of %s cannot be read; tell the operator",
			name)
	}
	return err
}

// Stored returns the files stored so far. They are not visible yet, and the
// caller may still change their names.
func (u *Upload) Stored() []File { return u.stored }

// Protect gives the links of all files a password; hash is its hash.
func (u *Upload) Protect(hash string) { u.sending.Password = hash }

// Commit makes the files visible and queues a notice for each file and each
// recipient, all in one call to the table. If the table refuses the write, nothing is
// stored. After any other error the outcome is unknown; the sweeper removes what did
// not become visible.
//
// It returns a List of up to limit of the owner's newest files, which takes one more
// call. Stored files that newer ones have pushed off the page are added at its end.
// If limit is 0 or the list cannot be read, it returns the stored files alone.
func (u *Upload) Commit(ctx context.Context, limit int) (Page, error) {
	found, err := u.commit(ctx, limit)
	if err == nil && limit == 0 || errors.Is(err, table.ErrUnread) {
		return Page{Files: u.listed()}, nil // the upload succeeded, so an error would mislead
	}
	if err != nil {
		return Page{}, err
	}
	page := u.s.page(ctx, found, u.target)
	if len(u.stored) > 0 && u.stored[0].ID < page.Next {
		page = page.With(u.listed()...)
	}
	return page, nil
}

func (u *Upload) listed() (stored []*Listed) {
	for _, f := range u.stored {
		stored = append(stored, u.s.listed(f))
	}
	return stored
}

// With adds to the page those stored files that would come on a later one. The stored files are
// in the order of their ids.
func (p Page) With(stored ...*Listed) Page {
	if p.Next == 0 {
		return p
	}
	for _, f := range slices.Backward(stored) {
		if f.ID < p.Next {
			p.Files = append(p.Files, f)
		}
	}
	return p
}

func (u *Upload) commit(ctx context.Context, limit int) (found table.Page, err error) {
	ctx, cancel := cleaning(ctx)
	defer cancel()
	ops, err := u.operations(ctx)
	if err != nil {
		u.Abort(ctx)
		return found, err
	}
	err = u.s.bounded(ctx, u.owner, u.by, Taking{Files: u.stored}, func(more []table.Op) (_ int, err error) {
		if all := slices.Concat(ops, more); limit == 0 {
			err = u.s.Table.Write(ctx, all...)
		} else {
			found, err = u.s.Table.WriteThenQuery(ctx, newestFirst(
				u.owner,
				blob.Files,
				limit,
			), all...)
		}
		return len(ops), err
	})
	if refused(err) {
		u.Abort(ctx)
	}
	if lost := u.Hold.Lost(err); fault.Is(lost, fault.Conflict) {
		return found, lost
	}
	if errors.Is(err, table.ErrCondition) && u.target.Quota > 0 {
		return found, fault.New(
			fault.TooLarge, "other uploads took the room meanwhile, or the user was removed",
		)
	}
	if errors.Is(err, table.ErrCondition) {
		return found, fault.New(
			fault.Conflict, "the user was given a quota or removed meanwhile; upload again",
		)
	}
	return found, fault.Wrap(err, "storing the records")
}

// operations returns what the commit writes.
func (u *Upload) operations(ctx context.Context) ([]table.Op, error) {
	var ops []table.Op
	var err error
	for i := range u.stored {
		added, failed := u.s.publishNew(ctx, &u.stored[i], u.sending)
		ops, err = append(ops, added...), errors.Join(err, failed)
	}
	return slices.Concat(rememberFiles(u.Hold, u.stored, u.sending), ops, u.use()), err
}

// publishNew returns the operations that make a new file visible and queue its notices. It also
// completes the record: hours may have passed since the bytes were stored, and the key may have
// been revoked meanwhile.
func (s *Service) publishNew(
	ctx context.Context,
	f *File,
	sending Sending,
) ([]table.Op, error) {
	var notices []table.Op
	for _, m := range sending.Recipients {
		op, err := s.Outbox.Message(ctx, m, *f, sending.Options)
		if err != nil {
			return nil, err
		}
		notices, f.Recipients = append(notices, op), append(f.Recipients, op.Key.SK)
	}
	f.Notify = sending.Tell.To != ""
	links, err := s.Links.Add(f, sending)
	if err != nil {
		return nil, err
	}
	event, err := s.Outbox.Event(ctx, Event{What: Uploaded, File: *f})
	return slices.Concat(f.publish(), links, notices, event), err
}

// Abort removes what was stored, and gives back its room and the count of its
// notices. It works even after ctx has ended. If a call fails, the sweeper
// removes the bytes, endReservations gives back the room, and the count stands
// until its hour or day is over.
func (u *Upload) Abort(ctx context.Context) {
	u.s.discard(ctx, u.stored...)
	u.stored = nil
	ctx, cancel := cleaning(ctx)
	defer cancel()
	if u.reserved != nil {
		_ = u.s.Table.Write(ctx, u.reserved.charge(0)...)
	}
	_ = u.s.Outbox.Release(ctx, u.counted, u.by, Addresses(u.sending.Recipients))
	u.counted = nil
}

// refused reports whether err means that a write did not happen. A fault comes from a check
// before the write, because a table returns no faults.
func refused(err error) bool {
	return fault.Of(err) != nil ||
		errors.Is(err, table.ErrCondition) ||
		errors.Is(err, table.ErrBusy) ||
		errors.Is(err, table.ErrFull)
}

// discard removes bytes that no record names. The errors can be ignored, since
// the sweeper would remove the bytes later.
func (s *Service) discard(ctx context.Context, all ...File) {
	ctx, cancel := cleaning(ctx)
	defer cancel()
	for _, f := range all {
		_ = s.Blobs.Delete(ctx, f.Area, f.Blob)
	}
}
