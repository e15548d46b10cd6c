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
	"ferry/shared/table"
	"ferry/shared/users"
)

// Complete makes the file of a session visible, or says which parts are missing. A repeated call
// returns the same file, or the fault Gone if that file was deleted since. sum is the CRC64NVME
// of the whole file, or nil.
//
// Apart from the store's own calls it reads the owner and writes one transaction. There is one
// more call to renew a reservation, and one if the session has recipients and was begun in another
// hour. A guest's transaction is retried if other guests write at the same time.
func (s *Service) Complete(ctx context.Context, sess Session, sum *uint64) (*Listed, error) {
	if sess.Done {
		return s.completedFile(ctx, sess)
	}
	if sess.Length < 0 {
		return nil, fault.Parameter(
			"length", "length is missing: this session began without one",
		)
	}
	read := s.Now()
	owner, err := s.user(ctx, sess.Owner)
	if err != nil {
		return nil, s.badOwner(ctx, sess.Owner, err)
	}
	if owner.Name == "" ||
		owner.Incarnation != sess.Incarnation ||
		owner.State == users.Disabled {
		return nil, errNoDestination()
	}
	if at := sess.Expiry.At; at != 0 && at <= s.Now().Unix() {
		return nil, fault.Parameter(
			"expires", "the date of expires has passed: begin a new upload",
		)
	}
	if err := s.holdRoom(ctx, &sess); fault.Is(err, fault.Conflict) {
		return s.overtaken(ctx, sess, err)
	} else if err != nil {
		return nil, err
	}
	if err := s.recountNotices(ctx, &sess); err != nil {
		return nil, err
	}
	written, err := s.upload(sess).Complete(ctx, sum)
	if errors.Is(err, blob.ErrNoUpload) {
		return s.overtaken(
			ctx,
			sess,
			fault.New(fault.NotFound, "the parts are gone; begin a new upload"),
		)
	}
	if err != nil && sess.Streamed { // the length may have been wrong
		_ = s.Table.Write(ctx, sess.reservation().charge(0)...) // if this fails, the reservation lapses
	}
	if err == nil {
		err = s.checkHash(ctx, sess)
	}
	var contents Contents
	if err == nil {
		contents, err = s.checkBundle(ctx, sess)
	}
	if err != nil {
		return nil, completeFault(err)
	}
	f := s.newRecord(File{
		ID:       sess.FileID,
		Name:     sess.Name,
		Type:     sess.Type,
		SHA256:   sess.SHA256,
		Blob:     sess.Blob,
		By:       sess.By,
		Contents: contents,
	}, written, owner, sess.Expiry)
	room := sess.reservation().charge(f.Length)
	if room == nil { // a quota may have come after the session
		room = s.charge(owner, read, f.Length)
	}
	return s.finish(ctx, sess, f, room)
}

func errNoDestination() error {
	return fault.Parameter("d", "the destination user no longer exists")
}

// recountNotices counts a session's notices again in the hour and day of its completion, so that
// a week's notices cannot all go out in one day. It runs before anything changes. The session
// records the new time, so a repeated completion counts nothing.
func (s *Service) recountNotices(ctx context.Context, sess *Session) error {
	last := time.UnixMilli(cmp.Or(sess.Counted, sess.Created))
	mark := func(at time.Time) table.Op {
		return table.Update(sessionKey(sess.ID)).Set("counted", at.UnixMilli()).
			If(table.Equal("done", false), table.AtMost("counted", sess.Counted))
	}
	at, err := s.Outbox.Reserve(ctx, sess.By, Addresses(sess.Recipients), last, mark)
	if errors.Is(err, table.ErrCondition) {
		return nil // another request counted them, or completed or ended the session
	}
	if err == nil {
		sess.Counted = at.UnixMilli()
	}
	return err
}

// finish turns a session into a file, in one transaction.
func (s *Service) finish(
	ctx context.Context,
	sess Session,
	f File,
	room []table.Op,
) (*Listed, error) {
	ctx, cancel := cleaning(ctx)
	defer cancel()
	done := sess
	done.Done = true
	done.Sending = Sending{}
	done.Hashed = 0
	done.Hash = nil
	ops, err := s.publishNew(ctx, &f, sess.Sending)
	if err != nil {
		return nil, err
	}
	ops = append(ops,
		table.Put(sessionKey(sess.ID), done).
			If(table.Equal("done", false)).
			Expire(sess.forgotten()))
	ops = slices.Concat(
		ops,
		sess.indexed(table.Delete),
		[]table.Op{sess.opened(-1)},
		s.missed(f),
		room,
	)
	taking := Taking{Files: []File{f}, Of: sess.ID}
	err = s.bounded(ctx, sess.Owner, sess.By, taking, func(more []table.Op) (int, error) {
		return len(ops), s.Table.Write(ctx, slices.Concat(ops, more)...)
	})
	if errors.Is(err, table.ErrCondition) {
		return s.overtaken(ctx, sess, &fault.Fault{
			Kind:   fault.Conflict,
			Cause:  err,
			Detail: "the upload was ended, or its user was removed or given a quota; try again",
		})
	}
	if err != nil {
		return nil, fmt.Errorf("storing the record: %w", err)
	}
	s.endParts(ctx, sess)
	return s.listed(f), nil
}

// overtaken returns the file if another request has completed the session, and
// the given error otherwise.
func (s *Service) overtaken(
	ctx context.Context,
	sess Session,
	otherwise error,
) (*Listed, error) {
	now, err := s.session(ctx, sess.ID)
	if fault.Is(err, fault.NotFound) { // the session was ended, so no record will name its object
		s.discard(ctx, File{Area: blob.Files, Blob: sess.Blob})
		return nil, otherwise
	}
	if err != nil {
		return nil, err
	}
	if !now.Done {
		return nil, otherwise
	}
	return s.completedFile(ctx, now)
}

func (s *Service) completedFile(ctx context.Context, sess Session) (*Listed, error) {
	f := File{
		By:     sess.By,
		Owner:  sess.Owner,
		Area:   blob.Files,
		ID:     sess.FileID,
		Name:   sess.Name,
		Length: sess.Length,
	}
	kept, err := s.kept(ctx, s.listed(f))
	if err != nil {
		return nil, err
	}
	return kept[0], nil
}

func completeFault(err error) error {
	if errors.Is(err, blob.ErrLength) {
		return &fault.Fault{
			Kind:   fault.Invalid,
			Detail: "more parts have arrived than length says",
			Cause:  err,
		}
	}
	if missing, ok := errors.AsType[*blob.MissingError](err); ok {
		numbers := strings.ReplaceAll(
			strings.Trim(fmt.Sprint(missing.Numbers), "[]"),
			" ",
			", ",
		)
		return &fault.Fault{
			Kind:   fault.Invalid,
			Cause:  err,
			Detail: "parts are missing, beginning with " + numbers,
		}
	}
	return sumFault(err, "the file")
}

// checkHash compares the stated SHA-256 with that of the object. One request
// hashes a limited number of bytes, saves the state in the session, and asks the
// caller to complete again. So no request times out, even for the largest file.
func (s *Service) checkHash(ctx context.Context, sess Session) error {
	if sess.SHA256 == nil {
		return nil
	}
	sum, err := s.hashMore(ctx, &sess)
	if err != nil {
		return fmt.Errorf("hashing the object: %w", err)
	}
	if sess.Hashed < sess.Length {
		return s.saveHash(ctx, sess, sum)
	}
	if got := sum.Sum(nil); !bytes.Equal(got, sess.SHA256) {
		if err := s.endMismatched(ctx, sess); err != nil {
			return err
		}
		return fault.New(fault.Invalid,
			"the SHA-256 of the file is %x, but %x was stated; begin a new upload", got, sess.SHA256)
	}
	return nil
}

// hashMore resumes the hash of the object where the previous request stopped.
func (s *Service) hashMore(ctx context.Context, sess *Session) (hash.Hash, error) {
	sum := sha256.New()
	if sess.Hashed > 0 {
		if err := sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(sess.Hash); err != nil {
			return nil, err
		}
	}
	r, err := s.Blobs.Open(ctx, blob.Files, sess.Blob)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if _, err := r.Seek(sess.Hashed, io.SeekStart); err != nil {
		return nil, err
	}
	part := io.LimitReader(r, cmp.Or(s.HashStep, hashStep))
	n, err := io.CopyBuffer(sum, struct{ io.Reader }{part}, make([]byte, 256<<10))
	sess.Hashed += n
	return sum, err
}

// saveHash saves the state of a hash, and asks the caller to complete again.
func (s *Service) saveHash(ctx context.Context, sess Session, sum hash.Hash) (err error) {
	if sess.Hash, err = sum.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return fmt.Errorf("saving a SHA-256: %w", err)
	}
	err = s.Table.Write(ctx, table.Put(sessionKey(sess.ID), sess).
		If(table.Equal("done", false)).
		Expire(sess.forgotten()))
	if err != nil && !errors.Is(err, table.ErrCondition) { // refused if another request completed or ended it
		return fmt.Errorf("storing an upload session: %w", err)
	}
	return &fault.Fault{
		Kind:  fault.Unavailable,
		After: time.Second,
		Detail: fmt.Sprintf(
			"the SHA-256 is being compared, %d of %d bytes so far; complete the upload again to continue", sess.Hashed, sess.Length,
		),
	}
}

// endMismatched ends the session before it removes the object. If the session
// cannot be ended, a repeated request still finds the object to compare.
func (s *Service) endMismatched(ctx context.Context, sess Session) error {
	ctx, cancel := cleaning(ctx)
	defer cancel()
	if err := s.EndSession(ctx, sess); err != nil && !fault.Is(err, fault.Conflict) { // another request ended it
		return err
	}
	s.discard(ctx, File{Area: blob.Files, Blob: sess.Blob})
	return nil
}
