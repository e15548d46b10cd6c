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
	"strings"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/table"
)

// Complete makes the file of a session visible, or tells what is missing. To
// repeat it gives the same file. sum is the CRC64NVME of the whole, or nil.
//
// After the session is read it costs the owner's profile, the store's calls,
// and one transaction; and one more if it has recipients and was begun in
// another hour.
func (s *Service) Complete(ctx context.Context, it Session, sum *uint64) (*Listed, error) {
	if it.Done {
		return s.completed(ctx, it)
	}
	var owner auth.User
	err := s.Table.Get(ctx, auth.UserKey(it.Owner), &owner)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return nil, fmt.Errorf("reading a user: %w", err)
	}
	if err != nil || owner.Incarnation != it.Incarnation || owner.State == auth.Disabled {
		return nil, envelope.NewFault(envelope.Invalid, "the destination user does not exist any more")
	}
	if err := s.recount(ctx, &it); err != nil {
		return nil, err
	}
	written, err := s.Parts.CompleteParts(ctx, blob.Files, it.blobKey(), it.Upload, it.Layout(), sum)
	if errors.Is(err, blob.ErrNoUpload) {
		return s.overtaken(ctx, it, envelope.NewFault(envelope.NotFound, "the parts of the upload are gone; begin it anew"))
	}
	if err == nil {
		err = s.checkHash(ctx, it)
	}
	if err != nil {
		return nil, completeFault(err)
	}
	f := File{ID: it.FileID, Name: it.Name, Type: it.Type, SHA256: it.SHA256, Blob: it.blobKey()}
	return s.finish(ctx, it, s.arrived(f, written, owner, it.Uploader, it.ByWhich))
}

// recount counts a session's notices in the hour and the day of its completion
// too, before anything changes: else those of a week could come on one day. The
// session remembers it, so that to complete it once more counts nothing more.
func (s *Service) recount(ctx context.Context, it *Session) error {
	last := time.UnixMilli(cmp.Or(it.Counted, it.Created))
	mark := func(at time.Time) table.Op {
		return table.Update(sessionKey(it.ID)).Set("counted", at.UnixMilli()).
			If(table.Equal("done", false), table.AtMost("counted", it.Counted))
	}
	at, err := s.Outbox.ReserveAgain(ctx, last, mark, it.Uploader, Sending{it.Notices, it.Receipt}.to())
	if errors.Is(err, table.ErrCondition) {
		return nil // another request has counted them, or completed or ended the session
	}
	if err == nil {
		it.Counted = at.UnixMilli()
	}
	return err
}

// finish is the transaction that makes a session a file.
func (s *Service) finish(ctx context.Context, it Session, f File) (*Listed, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	done := it
	done.Done, done.Notices, done.Receipt, done.Hashed, done.Hash = true, nil, Receipt{}, 0, nil
	ops, err := s.appear(ctx, &f, Sending{it.Notices, it.Receipt})
	if err != nil {
		return nil, err
	}
	ops = append(ops,
		table.Put(sessionKey(it.ID), done).If(table.Equal("done", false)).Expire(it.gone()),
		table.Delete(it.indexKey()))
	ops = append(ops, s.reservation(it).charge([]File{f})...)
	err = s.Table.Write(ctx, ops...)
	if errors.Is(err, table.ErrCondition) {
		return s.overtaken(ctx, it, &envelope.Fault{Kind: envelope.Conflict, Detail: "the upload was ended, or its user removed", Cause: err})
	}
	if err != nil {
		return nil, fmt.Errorf("storing the record: %w", err)
	}
	s.endParts(ctx, it)
	return s.Listed(f), nil
}

// overtaken answers for a session that another request has completed, or else
// with a fault.
func (s *Service) overtaken(ctx context.Context, it Session, otherwise error) (*Listed, error) {
	now, err := s.session(ctx, it.ID)
	if envelope.IsFault(err, envelope.NotFound) { // ended: nothing will name its object
		s.discard(ctx, blob.Files, it.blobKey())
		return nil, otherwise
	}
	if err != nil {
		return nil, err
	}
	if !now.Done {
		return nil, otherwise
	}
	return s.completed(ctx, now)
}

func (s *Service) completed(ctx context.Context, it Session) (*Listed, error) {
	f, err := s.get(ctx, blob.Files, it.Owner, it.FileID)
	if err != nil {
		return nil, err
	}
	return s.Listed(f), nil
}

func completeFault(err error) error {
	if missing, ok := errors.AsType[*blob.MissingError](err); ok {
		return &envelope.Fault{Kind: envelope.Invalid, Cause: err, Detail: fmt.Sprintf("parts are missing: %s ...", strings.Trim(fmt.Sprint(missing.Numbers), "[]"))}
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
		return envelope.NewFault(envelope.Invalid, "the SHA-256 of the file is %x, stated was %x; begin the upload anew", got, it.SHA256)
	}
	return nil
}

// hashOf is the hash as far as an earlier request came.
func hashOf(it Session) (hash.Hash, error) {
	sum := sha256.New()
	if it.Hashed == 0 {
		return sum, nil
	}
	return sum, envelope.Wrap(sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(it.Hash), "going on with a SHA-256")
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
	return &envelope.Fault{Kind: envelope.Unavailable, After: time.Second,
		Detail: fmt.Sprintf("the SHA-256 is being compared, %d of %d bytes so far; complete the upload again to go on", it.Hashed, it.Length)}
}

// endWrong ends the session first: if that fails, a repetition still finds the
// object to compare.
func (s *Service) endWrong(ctx context.Context, it Session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	if err := s.EndSession(ctx, it); err != nil && !envelope.IsFault(err, envelope.Conflict) { // another complete has ended it
		return err
	}
	s.discard(ctx, blob.Files, it.blobKey())
	return nil
}
