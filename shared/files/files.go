// Package files keeps users' files: a record in the table, the bytes in the
// blob store, and a link item by which a download finds both in one look-up.
//
// The record comes last: bytes are stored before it, and removed after it. So
// a crash leaves bytes without a record, which the sweeper removes, and never a
// record without bytes.
//
// It may import auth, envelope and the ports, and not notify: who is told goes
// through the Outbox that it declares. Start reading with Service, then upload.go.
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/table"
)

// layout is the version of the stored forms.
const layout = 1

// PageSize is how many files an upload's answer lists.
const PageSize = 100

// File is a stored file. Owner and Area say where it is. An upload that goes on
// while its owner is removed leaves a file of an earlier Incarnation of that
// name: to a later user it does not exist, and the sweep removes it.
type File struct {
	V           int64     `json:"v"`
	Owner       string    `json:"owner"`
	Incarnation int64     `json:"incarnation,omitempty"` // of the owner
	Area        blob.Area `json:"area"`
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	Length      int64     `json:"length"`         // bytes
	Type        string    `json:"type,omitempty"` // media type as the uploader stated it
	Modified    int64     `json:"modified"`       // Unix milliseconds
	Blob        string    `json:"blob"`           // key in the blob store
	CRC64       string    `json:"crc64"`          // CRC64NVME, 16 hexadecimal digits
	SHA256      []byte    `json:"sha256,omitempty"`
	Uploader    string    `json:"uploader,omitempty"`   // if not the owner
	ByWhich     int64     `json:"byWhich,omitempty"`    // that uploader's incarnation
	Recipients  []string  `json:"recipients,omitempty"` // the notices that bring each recipient's link
	Notify      bool      `json:"notify,omitempty"`     // the first download is to be told of
	Expires     int64     `json:"expires,omitempty"`    // Unix seconds, when it leaves this area; 0 is never
}

// Config is what a Service works with.
type Config struct {
	auth.Ports
	Blobs     blob.Store
	Parts     blob.Parts // of the same store
	Outbox    Outbox
	Retention Retention
	HashStep  int64 // bytes of a SHA-256 that one completion of a session compares; 0 is 512 MiB
}

// Retention is how long files stay, unless their owner has terms of their own.
// 0 is for ever.
type Retention struct {
	KeepDays   int64 // in the user area
	BackupDays int64 // in the backup area, after it
}

// Service is safe for concurrent use.
type Service struct {
	Config
	memo  memo[*Listed] // of records
	links memo[link]
}

// New returns a Service.
func New(c Config) *Service { return &Service{Config: c} }

// Key is where the record of a file is stored.
func Key(area blob.Area, owner string, id int64) table.Key {
	return table.Key{PK: partition(area, owner), SK: sortKey(id)}
}

func partition(area blob.Area, owner string) string { return string(area) + "#" + owner }

// sortKey orders ids as numbers.
func sortKey(id int64) string { return fmt.Sprintf("%016d", id) }

func (f File) key() table.Key { return Key(f.Area, f.Owner, f.ID) }

// UploadedBy reports whether it was this user who has uploaded the file.
func (f File) UploadedBy(u auth.User) bool {
	if f.Uploader == "" {
		return f.Owner == u.Name && f.Incarnation == u.Incarnation
	}
	return f.Uploader == u.Name && f.ByWhich == u.Incarnation
}

// Expired reports whether the file has left its area, be it swept or not.
func (f File) Expired(now time.Time) bool { return f.Expires != 0 && now.Unix() >= f.Expires }

// Page is a page of an area, newest first. Next is the id to continue after,
// 0 if there is nothing more.
type Page struct {
	Files []*Listed
	Next  int64
}

// List returns a page of up to limit files with ids below after; after 0
// starts with the newest. One call to the table. A page may be shorter than
// limit although Next says that there is more: what has expired, or is of
// another incarnation of the owner, is left out.
func (s *Service) List(ctx context.Context, owner auth.User, area blob.Area, after int64, limit int) (Page, error) {
	q := newest(owner.Name, area, limit)
	if after > 0 {
		q.After = sortKey(after)
	}
	found, err := s.Table.Query(ctx, q)
	if err != nil {
		return Page{}, fmt.Errorf("listing files: %w", err)
	}
	return s.page(found, owner)
}

func newest(owner string, area blob.Area, limit int) table.Query {
	return table.Query{PK: partition(area, owner), Descending: true, Limit: limit}
}

func (s *Service) page(found table.Page, owner auth.User) (Page, error) {
	page := Page{Files: make([]*Listed, 0, len(found.Items))}
	var last *Listed
	now := s.Now()
	for _, item := range found.Items {
		var err error
		if last, err = s.memo.read(item, s.listed); err != nil {
			return Page{}, err
		}
		if !last.Expired(now) && last.Incarnation == owner.Incarnation {
			page.Files = append(page.Files, last)
		}
	}
	if found.More {
		page.Next = last.ID
	}
	return page, nil
}

// Open returns the file's bytes.
func (s *Service) Open(ctx context.Context, f File) (io.ReadSeekCloser, error) {
	b, err := s.Blobs.Open(ctx, f.Area, f.Blob)
	if errors.Is(err, blob.ErrNotFound) {
		// Between the look-up and now the file was moved or removed.
		return nil, envelope.NewFault(envelope.Unauthorized, "the download link is not known, or has expired")
	}
	return b, envelope.Wrap(err, "opening a file")
}

// expiry returns when a file that enters an area now leaves it.
func (s *Service) expiry(area blob.Area, owner auth.User) int64 {
	days := cmp.Or(owner.KeepDays, s.Retention.KeepDays)
	if area == blob.Backup {
		days = cmp.Or(owner.BackupDays, s.Retention.BackupDays)
	}
	if days == 0 {
		return 0
	}
	return s.Now().AddDate(0, 0, int(days)).Unix()
}

// blobKey makes a key that was never used and never will be again.
func (s *Service) blobKey(owner string, id int64) (string, error) {
	random, err := auth.RandomToken(s.Random)
	if err != nil {
		return "", err
	}
	return owner + "/" + strconv.FormatInt(id, 10) + "-" + random[:22], nil
}

// ParseBlobKey reads the owner and the id of the file whose bytes have a key
// in the blob store: owner/id-random. ok is false for keys of another form.
func ParseBlobKey(key string) (owner string, id int64, ok bool) {
	owner, name, _ := strings.Cut(key, "/")
	digits, random, ok := strings.Cut(name, "-")
	id, err := strconv.ParseInt(digits, 10, 64)
	return owner, id, ok && err == nil && random != ""
}

// Listed is a file and how a response shows it, with the token of its link in
// place of the link. Pages share it: it never changes.
type Listed struct {
	File
	Shown *envelope.File
}

// Listed returns the file as a list shows it.
func (s *Service) Listed(f File) *Listed {
	shown := envelope.File{ID: f.ID, Name: f.Name, Length: f.Length, Modified: f.Modified, LinkURL: s.Token(f)}
	return &Listed{File: f, Shown: shown.Rendered()}
}

// memoSize is how many records are remembered at most, some 1 KiB each.
const memoSize = 4096

// memo remembers what items decode to, by their stored form. Decoding a page
// costs more than reading it, and each upload is answered with one. As the
// same form always decodes alike nothing ever has to be forgotten, but for
// room: the older half goes when the younger is full.
type memo[T any] struct {
	mu         sync.Mutex
	young, old map[string]T
}

func (m *memo[T]) get(raw []byte) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := m.young[string(raw)]; ok {
		return value, true
	}
	value, ok := m.old[string(raw)]
	if ok {
		m.keep(raw, value)
	}
	return value, ok
}

// keep is for one who holds the lock.
func (m *memo[T]) keep(raw []byte, value T) {
	if m.young == nil || len(m.young) >= memoSize/2 {
		m.young, m.old = map[string]T{}, m.young
	}
	m.young[string(raw)] = value
}

// read returns what an item decodes to, or what an equal one decoded to.
func (m *memo[T]) read(item table.Item, decode func(table.Item) (T, error)) (T, error) {
	if value, ok := m.get(item.Raw); ok && item.Raw != nil {
		return value, nil
	}
	value, err := decode(item)
	if err == nil && item.Raw != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.keep(item.Raw, value)
	}
	return value, err
}

// listed decodes a record.
func (s *Service) listed(item table.Item) (*Listed, error) {
	var f File
	if err := item.Decode(&f); err != nil {
		return nil, fmt.Errorf("reading a file's record: %w", err)
	}
	return s.Listed(f), nil
}
