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

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// Complete makes the file of a session visible, or says which parts are missing.
// A repeated call returns the same file, or the fault Gone if that was deleted since. sum is
// the CRC64NVME of the whole file, or nil.
//
// Apart from the store's own calls it reads the owner and writes one
// transaction. If the session has recipients and was begun in another hour,
// there is one more call.
func (s *Service) Complete(ctx context.Context, it Session, sum *uint64) (*Listed, error) {
	if it.Done {
		return s.completedFile(ctx, it)
	}
	if it.Length < 0 {
		return nil, fault.Parameter("length", "length is missing: this session began without one")
	}
	var owner auth.User
	read := s.Now()
	err := s.Table.Get(ctx, auth.UserKey(it.Owner), &owner)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return nil, s.badOwner(ctx, it.Owner, fmt.Errorf("reading a user: %w", err))
	}
	if err != nil || owner.Incarnation != it.Incarnation || owner.State == auth.Disabled {
		return nil, errNoDestination()
	}
	if err := s.HoldRoom(ctx, &it); fault.Is(err, fault.Conflict) {
		return s.overtaken(ctx, it, err)
	} else if err != nil {
		return nil, err
	}
	if err := s.recountNotices(ctx, &it); err != nil {
		return nil, err
	}
	written, err := s.upload(it).Complete(ctx, sum)
	if errors.Is(err, blob.ErrNoUpload) {
		return s.overtaken(ctx, it, fault.New(fault.NotFound, "the parts are gone; begin a new upload"))
	}
	if err != nil && it.Streamed { // the length may have been wrong
		_ = s.Table.Write(ctx, it.reservation().charge(0)...) // if this fails, it lapses
	}
	if err == nil {
		err = s.checkHash(ctx, it)
	}
	if err != nil {
		return nil, completeFault(err)
	}
	f := s.newRecord(File{ID: it.FileID, Name: it.Name, Type: it.Type, SHA256: it.SHA256, Blob: it.Blob, By: it.By},
		written, owner)
	room := it.reservation().charge(f.Length)
	if room == nil && owner.Quota > 0 { // the quota came after the session
		room = append(room, table.Update(auth.UserKey(it.Owner)).Add("used", f.Length).If(table.Exists()))
	} else if room == nil {
		room = s.unlimited(it.Owner, read)
	}
	return s.finish(ctx, it, f, room)
}

func errNoDestination() error {
	return fault.Parameter("d", "the destination user no longer exists")
}

// recountNotices counts a session's notices again in the hour and day of its completion, so that
// a week's notices cannot all go out in one day. It runs before anything changes. The session
// records it, so a repeated completion counts nothing.
func (s *Service) recountNotices(ctx context.Context, it *Session) error {
	last := time.UnixMilli(cmp.Or(it.Counted, it.Created))
	mark := func(at time.Time) table.Op {
		return table.Update(sessionKey(it.ID)).Set("counted", at.UnixMilli()).
			If(table.Equal("done", false), table.AtMost("counted", it.Counted))
	}
	at, err := s.Outbox.ReserveAgain(ctx, last, mark, it.By, it.addresses())
	if errors.Is(err, table.ErrCondition) {
		return nil // another request counted them, or completed or ended the session
	}
	if err == nil {
		it.Counted = at.UnixMilli()
	}
	return err
}

// finish turns a session into a file, in one transaction.
func (s *Service) finish(ctx context.Context, it Session, f File, room []table.Op) (*Listed, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	done := it
	done.Done, done.Sending, done.Hashed, done.Hash = true, Sending{}, 0, nil
	ops, err := s.publishNew(ctx, &f, it.Sending)
	if err != nil {
		return nil, err
	}
	ops = append(ops,
		table.Put(sessionKey(it.ID), done).If(table.Equal("done", false)).Expire(it.forgotten()))
	ops = slices.Concat(ops, it.indexed(table.Delete), []table.Op{it.opened(-1)}, s.missed(f), room)
	err = s.Table.Write(ctx, ops...)
	if errors.Is(err, table.ErrCondition) {
		return s.overtaken(ctx, it, &fault.Fault{Kind: fault.Conflict, Cause: err,
			Detail: "the upload was ended, or its user was removed or given a quota; try again"})
	}
	if err != nil {
		return nil, fmt.Errorf("storing the record: %w", err)
	}
	s.endParts(ctx, it)
	return s.Listed(f), nil
}

// overtaken returns the file if another request has completed the session, and
// the given error otherwise.
func (s *Service) overtaken(ctx context.Context, it Session, otherwise error) (*Listed, error) {
	now, err := s.session(ctx, it.ID)
	if fault.Is(err, fault.NotFound) { // the session was ended, so no record will name its object
		s.discard(ctx, File{Area: blob.Files, Blob: it.Blob})
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

func (s *Service) completedFile(ctx context.Context, it Session) (*Listed, error) {
	f := File{By: it.By, Owner: it.Owner, Area: blob.Files, ID: it.FileID, Name: it.Name, Length: it.Length}
	kept, err := s.kept(ctx, s.Listed(f))
	if err != nil {
		return nil, err
	}
	return kept[0], nil
}

func completeFault(err error) error {
	if errors.Is(err, blob.ErrLength) {
		return &fault.Fault{Kind: fault.Invalid, Detail: "more parts have arrived than length says", Cause: err}
	}
	if missing, ok := errors.AsType[*blob.MissingError](err); ok {
		numbers := strings.ReplaceAll(strings.Trim(fmt.Sprint(missing.Numbers), "[]"), " ", ", ")
		return &fault.Fault{Kind: fault.Invalid, Cause: err, Detail: "parts are missing, beginning with " + numbers}
	}
	return sumFault(err, "the file")
}

// checkHash compares the stated SHA-256 with that of the object. One request
// hashes a limited number of bytes, saves the state in the session, and asks the
// caller to complete again. So no request times out, even for the largest file.
func (s *Service) checkHash(ctx context.Context, it Session) error {
	if it.SHA256 == nil {
		return nil
	}
	sum, err := s.hashMore(ctx, &it)
	if err != nil {
		return fmt.Errorf("hashing the object: %w", err)
	}
	if it.Hashed < it.Length {
		return s.saveHash(ctx, it, sum)
	}
	if got := sum.Sum(nil); !bytes.Equal(got, it.SHA256) {
		if err := s.endMismatched(ctx, it); err != nil {
			return err
		}
		return fault.New(fault.Invalid, "the SHA-256 of the file is %x, but %x was stated; begin a new upload", got, it.SHA256)
	}
	return nil
}

// hashMore resumes the hash of the object where the previous request stopped.
func (s *Service) hashMore(ctx context.Context, it *Session) (hash.Hash, error) {
	sum := sha256.New()
	if it.Hashed > 0 {
		if err := sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(it.Hash); err != nil {
			return nil, err
		}
	}
	r, err := s.Blobs.Open(ctx, blob.Files, it.Blob)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if _, err := r.Seek(it.Hashed, io.SeekStart); err != nil {
		return nil, err
	}
	part := io.LimitReader(r, cmp.Or(s.HashStep, hashStep))
	n, err := io.CopyBuffer(sum, struct{ io.Reader }{part}, make([]byte, 256<<10))
	it.Hashed += n
	return sum, err
}

// saveHash saves the state of a hash, and asks the caller to complete again.
func (s *Service) saveHash(ctx context.Context, it Session, sum hash.Hash) (err error) {
	if it.Hash, err = sum.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return fmt.Errorf("saving a SHA-256: %w", err)
	}
	err = s.Table.Write(ctx, table.Put(sessionKey(it.ID), it).If(table.Equal("done", false)).Expire(it.forgotten()))
	if err != nil && !errors.Is(err, table.ErrCondition) { // refused if another request completed or ended it
		return fmt.Errorf("storing an upload session: %w", err)
	}
	return &fault.Fault{Kind: fault.Unavailable, After: time.Second,
		Detail: fmt.Sprintf("the SHA-256 is being compared, %d of %d bytes so far; complete the upload again to continue", it.Hashed, it.Length)}
}

// endMismatched ends the session before it removes the object. If the session
// cannot be ended, a repeated request still finds the object to compare.
func (s *Service) endMismatched(ctx context.Context, it Session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := s.EndSession(ctx, it); err != nil && !fault.Is(err, fault.Conflict) { // another request ended it
		return err
	}
	s.discard(ctx, File{Area: blob.Files, Blob: it.Blob})
	return nil
}
