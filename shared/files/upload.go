package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/table"
)

// MaxFiles is the most files in one upload that nobody is notified of. See
// Sending for others.
const MaxFiles = 20

const (
	// perFile is how many items a file has at most: record, link, event, and
	// the wish for a receipt. Each recipient has two, a link and a notice.
	perFile, perRecipient = 4, 2
	// perUpload are those of a claim and of a quota.
	perUpload = 3
)

// Sending says who is to hear of the files of an upload.
type Sending struct {
	Recipients []Message // each gets, for each file, a message with a link of their own
	Receipt    Receipt
}

// MaxFiles is the most files in one upload: all their items fit one transaction.
func (s Sending) MaxFiles() int {
	return min(MaxFiles, (table.MaxOps-perUpload)/(perFile+perRecipient*len(s.Recipients)))
}

// to are the addresses and numbers of the recipients.
func (s Sending) to() []string {
	all := make([]string, len(s.Recipients))
	for i, n := range s.Recipients {
		all[i] = n.To
	}
	return all
}

// cleanup bounds the work after a request that has failed or was cut off.
const cleanup = 20 * time.Second

// Part is one file of an upload.
type Part struct {
	Name   string
	Type   string // media type as stated by the sender
	Body   io.Reader
	Size   int64  // bytes, or -1 if not known
	SHA256 []byte // what the sender says it is, or nil
}

// Upload is a request's files on their way in. They become visible together,
// by Commit, or never. It is for one goroutine.
type Upload struct {
	s        *Service
	owner    string
	uploader auth.User
	sending  Sending
	max      int64         // most bytes of the request; -1 is unbounded
	life     time.Duration // of a reservation; 0 is reservationLife
	quota    *reservation
	claim    *Claim
	target   auth.User // the owner
	latest   int64     // the latest incarnation of the owner that this upload may be for
	id       int64     // taken and not used yet, or 0
	stored   []File
	counted  []time.Time // when the notices of a file were counted
}

// Begin starts an upload into the area of owner, a canonical name: it counts
// its notices, takes the first file's id and, for an owner with a quota,
// reserves room. max is the most bytes that the request can bring, -1 if it
// does not say. An owner who does not exist is an Invalid fault, or
// Unauthorized if it was to be the uploader; more notices than the uploader or
// a recipient may have is TooMany.
func (s *Service) Begin(ctx context.Context, owner string, uploader auth.User, max int64, sending Sending) (*Upload, error) {
	u := &Upload{s: s, owner: owner, uploader: uploader, max: max, sending: sending}
	return u, u.begin(ctx)
}

// begin does what Begin says. Anyone else's area may have been recreated
// meanwhile; the uploader's own must be the one that logged in.
func (u *Upload) begin(ctx context.Context) error {
	u.latest = math.MaxInt64
	if u.own() {
		u.latest = u.uploader.Incarnation
	}
	err := u.allow(ctx)
	if err != nil {
		return err
	}
	if err = u.takeID(ctx); err == nil {
		err = u.reserve(ctx)
	}
	if err != nil {
		u.Abort(ctx)
	}
	return err
}

// Claim makes the commit remember its result under the claim's key, for Repeat.
func (u *Upload) Claim(c *Claim) { u.claim = c }

// allow counts the notices of one file. One call to the table, if there are any.
func (u *Upload) allow(ctx context.Context) error {
	at, err := u.s.Outbox.Reserve(ctx, u.uploader.Name, u.sending.to())
	if err == nil {
		u.counted = append(u.counted, at)
	}
	return err
}

// uncount gives back what allow has counted, as nothing will be sent. If that
// fails, or the process ends before, less can be sent for as long as the
// windows last.
func (u *Upload) uncount(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	_ = u.s.Outbox.Release(ctx, u.counted, u.uploader.Name, u.sending.to())
	u.counted = nil
}

// Add stores the bytes of a part. One call to the store; for each part after
// the first, one to the table for its id, and one if there are recipients.
func (u *Upload) Add(ctx context.Context, p Part) error {
	if most := u.sending.MaxFiles(); len(u.stored) == most {
		return envelope.NewFault(envelope.Invalid, "one request with %d recipients takes at most %d files", len(u.sending.Recipients), most)
	}
	if u.id == 0 {
		if err := u.allow(ctx); err != nil {
			return err
		}
		if err := u.takeID(ctx); err != nil {
			return err
		}
	}
	id := u.id
	u.id = 0
	key, err := u.s.blobKey(u.owner, id)
	if err != nil {
		return err
	}
	body := &blob.Body{R: p.Body, Size: p.Size, SHA256: p.SHA256}
	if u.quota != nil {
		body.Left = &u.quota.left
	}
	written, err := u.s.Blobs.Create(ctx, blob.Files, key, body, p.Size)
	if errors.Is(err, blob.ErrTooLong) {
		return errQuota(u.quota.own, u.quota.bytes)
	}
	if err != nil {
		return bodyFault(err)
	}
	f := File{ID: id, Name: p.Name, Type: p.Type, SHA256: p.SHA256, Blob: key}
	u.stored = append(u.stored, u.s.arrived(f, written, u.target, u.uploader.Name, u.uploader.Incarnation))
	return nil
}

// arrived completes the record of a file whose bytes are in the store.
func (s *Service) arrived(f File, written blob.Written, owner auth.User, uploader string, which int64) File {
	f.V, f.Owner, f.Incarnation, f.Area = layout, owner.Name, owner.Incarnation, blob.Files
	f.Length, f.CRC64 = written.Size, fmt.Sprintf("%016x", written.CRC64NVME)
	f.Modified, f.Expires = s.Now().UnixMilli(), s.expiry(blob.Files, owner)
	if uploader != owner.Name {
		f.Uploader, f.ByWhich = uploader, which
	}
	return f
}

// own reports whether the uploader's own area is uploaded to.
func (u *Upload) own() bool { return u.uploader.Name == u.owner }

// bodyFault tells what is wrong with a body from the store's errors.
func bodyFault(err error) error {
	var digest *blob.DigestError
	switch {
	case errors.Is(err, blob.ErrLength):
		return &envelope.Fault{Kind: envelope.Invalid, Detail: "the body has another length than was stated", Cause: err}
	case errors.As(err, &digest):
		return envelope.NewFault(envelope.Invalid, "the SHA-256 of the body is %x, announced was %x", digest.Got, digest.Stated)
	}
	return fmt.Errorf("storing a file: %w", err)
}

// takeID takes the owner's next file id. It need not be durable by itself: the
// record that uses it is written later and makes it so. All ids of an upload
// are of one incarnation of the owner.
func (u *Upload) takeID(ctx context.Context) error {
	op := table.Update(auth.UserKey(u.owner)).Add("lastFile", 1).If(table.Exists(), table.AtMost("incarnation", u.latest))
	err := u.s.Table.Update(ctx, op.Relax(), &u.target)
	if errors.Is(err, table.ErrCondition) || err == nil && u.target.State == auth.Disabled {
		return u.gone()
	}
	if err != nil {
		return fmt.Errorf("taking a file id: %w", err)
	}
	u.id, u.latest = u.target.LastFile, u.target.Incarnation
	return nil
}

func (u *Upload) gone() error {
	if u.own() {
		return envelope.NewFault(envelope.Unauthorized, "the user was disabled or removed at this moment")
	}
	return envelope.NewFault(envelope.Invalid, "the destination user does not exist")
}

// Stored returns the files stored so far. They are not visible yet, and may get another name.
func (u *Upload) Stored() []File { return u.stored }

// Commit makes the files visible and puts a notice in the outbox for each file
// and each recipient, all in one call to the table. A refused
// commit has stored nothing; after any other error the outcome is open, and
// what is not visible is removed by the sweeper. It returns the stored files.
func (u *Upload) Commit(ctx context.Context) ([]*Listed, error) {
	return u.commit(ctx, func(ctx context.Context, ops []table.Op) error {
		return u.s.Table.Write(ctx, ops...)
	})
}

// CommitAndList is Commit, and then List of the owner's newest files with what
// was stored at their end, if so many came in between; if they cannot be read,
// it returns what was stored. Two calls to the table.
func (u *Upload) CommitAndList(ctx context.Context, limit int) (Page, error) {
	var found table.Page
	stored, err := u.commit(ctx, func(ctx context.Context, ops []table.Op) (err error) {
		found, err = u.s.Table.WriteThenQuery(ctx, newest(u.owner, blob.Files, limit), ops...)
		return err
	})
	if errors.Is(err, table.ErrUnread) {
		return Page{Files: stored}, nil // better than an error for what was stored
	}
	if err != nil {
		return Page{}, err
	}
	page, err := u.s.page(found, u.target)
	return page.With(stored...), err
}

// With adds at its end those of the given files, in the order of their ids,
// that come after the page.
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

func (u *Upload) commit(ctx context.Context, write func(context.Context, []table.Op) error) ([]*Listed, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	ops, err := remember(u.claim, u.stored)
	if err != nil {
		u.Abort(ctx)
		return nil, err
	}
	for i := range u.stored {
		added, err := u.s.appear(ctx, &u.stored[i], u.sending)
		if err != nil {
			u.Abort(ctx)
			return nil, err
		}
		ops = append(ops, added...)
	}
	ops = append(ops, u.quota.charge(u.stored)...)
	err = write(ctx, ops)
	if refused(err) {
		u.Abort(ctx)
	}
	if lost := u.claim.Lost(err); envelope.IsFault(lost, envelope.Conflict) {
		return nil, lost
	}
	if errors.Is(err, table.ErrCondition) && u.quota != nil {
		return nil, &envelope.Fault{Kind: envelope.Invalid, Detail: "the upload took too long, or its user was removed", Cause: err}
	}
	if err != nil && !errors.Is(err, table.ErrUnread) {
		return nil, fmt.Errorf("storing the records: %w", err)
	}
	var stored []*Listed
	for _, f := range u.stored {
		stored = append(stored, u.s.Listed(f))
	}
	return stored, err
}

// appear returns the operations that make a new file visible and tell of it,
// and completes its record.
func (s *Service) appear(ctx context.Context, f *File, sending Sending) ([]table.Op, error) {
	var sent []table.Op
	known := []link{{}} // of its own link there is nothing to know
	for _, m := range sending.Recipients {
		op, err := s.Outbox.Message(ctx, m, *f)
		if err != nil {
			return nil, err
		}
		sent, known = append(sent, op), append(known, link{Use: Use{To: m.To}})
		f.Recipients = append(f.Recipients, op.Key.SK)
	}
	f.Notify = sending.Receipt.To != ""
	event, err := s.Outbox.Event(ctx, Event{What: Uploaded, File: *f})
	return slices.Concat(s.publish(*f, known), sent, sending.Receipt.await(*f), event), err
}

// unique returns so many random bytes in hexadecimal.
func (s *Service) unique(bytes int) (string, error) {
	b := make([]byte, bytes)
	if _, err := io.ReadFull(s.Random, b); err != nil {
		return "", fmt.Errorf("making an identifier: %w", err)
	}
	return fmt.Sprintf("%x", b), nil
}

// Abort removes what was stored, and counts none of its notices. It works also
// when ctx has ended.
func (u *Upload) Abort(ctx context.Context) {
	for _, f := range u.stored {
		u.s.discard(ctx, f.Area, f.Blob)
	}
	u.stored = nil
	u.quota.cancel(ctx)
	u.uncount(ctx)
}

// refused reports whether a write is known not to have happened.
func refused(err error) bool {
	return errors.Is(err, table.ErrCondition) || errors.Is(err, table.ErrBusy) || errors.Is(err, table.ErrFull)
}

// discard removes an object that no record names. If that fails the sweeper
// removes it later, so that the error concerns nobody.
func (s *Service) discard(ctx context.Context, area blob.Area, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	_ = s.Blobs.Delete(ctx, area, key)
}
