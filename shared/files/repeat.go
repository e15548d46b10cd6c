package files

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/table"
)

// receipt is what is remembered of a file that an upload with a key has stored:
// enough to answer a repeat, and to know it from another upload.
type receipt struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Length   int64  `json:"length"`
	Modified int64  `json:"modified"`
	CRC64    string `json:"crc64"`
}

// remember returns what makes a commit remember what it stores, if a key was given.
func remember(c *Claim, stored []File) ([]table.Op, error) {
	if c == nil {
		return nil, nil
	}
	all := make([]receipt, len(stored))
	for i, f := range stored {
		all[i] = receipt{ID: f.ID, Name: f.Name, Length: f.Length, Modified: f.Modified, CRC64: f.CRC64}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding what was stored: %w", err)
	}
	return c.Done(string(text)), nil
}

// Repeat is an upload that was carried out before. It takes the files as an
// Upload does, and stores nothing. It is for one goroutine.
type Repeat struct {
	s     *Service
	owner string
	first []Listed
	seen  []File
}

// Repeat returns the repeat of an upload into the area of owner that had this
// result.
func (s *Service) Repeat(owner, result string) (*Repeat, error) {
	var all []receipt
	if err := json.Unmarshal([]byte(result), &all); err != nil {
		return nil, fmt.Errorf("reading the result of an upload: %w", err)
	}
	r := &Repeat{s: s, owner: owner}
	for _, f := range all {
		r.first = append(r.first, s.Listed(File{
			Owner: owner, Area: blob.Files, ID: f.ID, Name: f.Name, Length: f.Length, Modified: f.Modified, CRC64: f.CRC64,
		}))
	}
	return r, nil
}

// Add reads the bytes of a part.
func (r *Repeat) Add(ctx context.Context, p Part) error {
	if len(r.seen) == len(r.first) {
		return ErrOtherRequest()
	}
	body := &blob.Body{R: p.Body, Size: p.Size, SHA256: p.SHA256}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return bodyFault(err)
	}
	read := body.Written()
	r.seen = append(r.seen, File{Name: p.Name, Length: read.Size, CRC64: fmt.Sprintf("%016x", read.CRC64NVME)})
	return ctx.Err()
}

// Stored returns the files read so far, of which only name, length and
// checksum are known.
func (r *Repeat) Stored() []File { return r.seen }

// Files returns the files that the first upload has stored and, if they are the
// uploader's own, List of the newest with them at their end, if so many came since:
// that costs one call to the table. That the repeat brought others is a Conflict
// fault.
func (r *Repeat) Files(ctx context.Context, uploader auth.User, limit int) (page Page, err error) {
	if len(r.seen) != len(r.first) {
		return page, ErrOtherRequest()
	}
	for i, f := range r.first {
		if s := r.seen[i]; s.Name != f.Name || s.Length != f.Length || s.CRC64 != f.CRC64 {
			return page, ErrOtherRequest()
		}
	}
	if r.owner != uploader.Name {
		return Page{Files: r.first}, nil
	}
	page, err = r.s.List(ctx, uploader, blob.Files, 0, limit)
	return page.With(r.first...), err
}
