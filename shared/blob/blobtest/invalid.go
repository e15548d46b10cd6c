package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"ferry/shared/blob"
)

func invalidCases() []testCase {
	seed, after := objects{"files/k": {10, 1}}, objects{
		"files/k": {10, 1},
		"files/p": {1000, 1},
	}
	sent := inTurn(begin(data{1000, 1}), sendAll)
	return []testCase{
		{"every method refuses a bad key", seed, inTurn(sent, badKeys, complete), nil, after},
		{
			"every method refuses an unknown area", seed, inTurn(sent, unknownAreas, complete),
			nil, after,
		},
		{
			"every method fails when the context has ended",
			seed,
			inTurn(sent, endedContext, complete),
			nil,
			after,
		},
	}
}

// callAll calls every method with the key of an object, a free key and that of the
// session, and returns their errors.
func (s *state) callAll(
	ctx context.Context,
	area blob.Area,
	there, free, parts string,
) map[string]error {
	_, create := s.Create(ctx, area, free, bytes.NewReader([]byte("x")), 1)
	r, open := s.Open(ctx, area, there)
	if open == nil {
		r.Close()
	}
	_, sign := s.SignGet(ctx, area, there, blob.Signed{Expires: time.Minute})
	_, begin := s.Begin(ctx, area, free, s.layout)
	u := s.Upload(area, parts, s.id, s.layout)
	_, signPart := u.Sign(ctx, 1, nil, time.Minute)
	_, write := u.Write(ctx, 1, bytes.NewReader(s.part(1)), nil)
	_, list := u.List(ctx)
	_, complete := u.Complete(ctx, nil)
	_, backup := s.at("backup/new")
	_, first := s.at("files/k")
	return map[string]error{
		"Create":        create,
		"Open":          open,
		"SignGet":       sign,
		"Delete":        s.Delete(ctx, area, there),
		"Copy from":     s.Copy(ctx, area, there, blob.Backup, backup),
		"Copy to":       s.Copy(ctx, blob.Files, first, area, free),
		"CopyRange":     s.CopyRange(ctx, area, there, 0, 1, free),
		"Begin":         begin,
		"Sign":          signPart,
		"Write":         write,
		"List of parts": list,
		"Complete":      complete,
		"Abort":         u.Abort(ctx),
	}
}

// badKeys tries keys that would lead out of a folder, or have bytes that no key has.
func badKeys(s *state) error {
	for _, bad := range []string{"", "../a", "a/..", "a/b\x00"} {
		for method, err := range s.callAll(s.Context(), blob.Files, bad, bad, bad) {
			s.wantErr(fmt.Sprintf("%s of %q", method, bad), err, errInvalid)
		}
	}
	return nil
}

// callGood calls List, and callAll with good keys.
func (s *state) callGood(ctx context.Context, area blob.Area) map[string]error {
	_, there := s.at("files/k")
	_, free := s.at("files/new")
	_, parts := s.at("files/p")
	errs := s.callAll(ctx, area, there, free, parts)
	_, errs["List"] = s.List(ctx, area, "", 1)
	return errs
}

func unknownAreas(s *state) error {
	for method, err := range s.callGood(s.Context(), "other") {
		s.wantErr(method, err, errInvalid)
	}
	return nil
}

// endedContext leaves out the methods that do not call the store.
func endedContext(s *state) error {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	errs := s.callGood(ctx, blob.Files)
	delete(errs, "SignGet")
	delete(errs, "Sign")
	for method, err := range errs {
		if method != "Write" && method != "CopyRange" || !errors.Is(err, blob.ErrUnsupported) {
			s.wantErr(method, err, context.Canceled)
		}
	}
	return nil
}
