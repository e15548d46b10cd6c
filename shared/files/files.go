// Package files keeps users' files: a record in the table, the bytes in the
// blob store, and link items, through which a download finds both in one look-up.
//
// The bytes are stored before the record and removed after it. So a crash may
// leave bytes without a record, which the sweeper removes, but never a record
// without bytes.
//
// Notices go through the Outbox that the package declares. Start reading with
// Service, then upload.go.
package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/table"
	"ferry/shared/users"
)

// PageSize is how many files the answer to an upload lists.
const PageSize = 100

// File is the record of a stored file. Owner and Area say where it is.
//
// If a user is removed during an upload and another gets the same name, the
// upload may leave a file of the earlier Incarnation. The later user never sees
// it, and the sweep removes it.
type File struct {
	V           int64     `json:"v"`
	Owner       string    `json:"owner"`
	Incarnation int64     `json:"incarnation,omitempty"` // of the owner
	Area        blob.Area `json:"area"`
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	Length      int64     `json:"length"`         // bytes
	Type        string    `json:"type,omitempty"` // media type, as stated by the uploader
	Modified    int64     `json:"modified"`       // Unix milliseconds
	Blob        string    `json:"blob"`           // key in the blob store
	CRC64       string    `json:"crc64"`          // CRC64NVME, 16 hexadecimal digits
	SHA256      []byte    `json:"sha256,omitempty"`
	Contents              // of a bundle
	By
	Recipients []string `json:"recipients,omitempty"` // IDs of its other links; the notice's ID if a notice brought one
	Notify     bool     `json:"notify,omitempty"`     // the uploader wants a receipt of the first download
	Expires    int64    `json:"expires,omitempty"`    // Unix seconds, when it leaves this area; 0 is never
	// From has the places, as AREA/KEY, where the bytes may still be after a move. A link's
	// copy of the record keeps them when the move is finished.
	From  []string `json:"from,omitempty"`
	Moved int64    `json:"moved,omitempty"` // Unix seconds of the last move
	Key   int64    `json:"key,omitempty"`   // version of its links' key; 0 is the first
	// Renewed counts how often its own link was renewed, and Changes how often the record was
	// changed in place.
	Renewed int64 `json:"renewed,omitempty"`
	Changes int64 `json:"changes,omitempty"`
	// Limited notes that a link has options of its own. If such a link is lost, it must not come
	// back without them.
	Limited bool   `json:"limited,omitempty"`
	Status  Status `json:"status,omitempty"`
}

// Config holds what a Service needs.
type Config struct {
	Table     table.Table
	Users     *users.Service // in this table
	Key       keys.LinkKey
	Random    io.Reader
	Now       func() time.Time
	Blobs     blob.Store
	Parts     blob.Parts // of the same store
	Outbox    Outbox
	Links     Links
	Retention Retention
	Free      func() (int64, error) // bytes that uploads may still take; nil means no bound
	Log       *slog.Logger
	HashStep  int64 // most bytes that one call of Complete hashes; 0 is 512 MiB
	Shared    bool  // other processes use the table too
	// Mover schedules a call of MoveBytes, which moves a file's bytes after its record. If Mover
	// is nil, the request moves the bytes itself.
	Mover func(ctx context.Context, s *Service, owner string, id int64) error
}

// Retention says how long files stay, unless their owner has different terms. 0 means for ever.
type Retention struct {
	KeepDays   int64 // in the user area
	BackupDays int64 // in the backup area, after that
}

// Service stores, lists, moves and removes files. It is safe for concurrent use.
type Service struct {
	Config
	records table.Memo[*Listed]
}

// New returns a Service.
func New(c Config) *Service { return &Service{Config: c} }

// Key returns the table's key of a file's record.
func Key(area blob.Area, owner string, id int64) table.Key {
	return table.Key{PK: partition(area, owner), SK: sortKey(id)}
}

func partition(area blob.Area, owner string) string { return string(area) + "#" + owner }

// sortKey pads an id, so that keys sort by number.
func sortKey(id int64) string { return fmt.Sprintf("%016d", id) }

func (f File) key() table.Key { return Key(f.Area, f.Owner, f.ID) }

// Fits reports whether bytes match the record.
func (f File) Fits(w blob.Written) bool {
	return w.Size == f.Length && fmt.Sprintf("%016x", w.CRC64NVME) == f.CRC64
}

// Expired reports whether the file's time in its area is over, even if no sweep
// has moved it yet.
func (f File) Expired(now time.Time) bool { return f.Expires != 0 && now.Unix() >= f.Expires }

// Page is a page of an area, newest first. Next is the id after which to
// continue, or 0 on the last page. A record that cannot be read is left out.
type Page struct {
	Files  []*Listed
	Next   int64
	Search string // the text that all names contain
}

// List returns a page of up to limit files with ids below after, or from the
// newest on if after is 0. It makes one call to the table. A page that is not
// the last may still be shorter than limit: files that have expired, or are of
// another incarnation of the owner, are left out.
func (s *Service) List(
	ctx context.Context,
	owner users.User,
	area blob.Area,
	after int64,
	limit int,
) (Page, error) {
	q := newestFirst(owner.Name, area, limit)
	if after > 0 {
		q.After = sortKey(after)
	}
	found, err := s.Table.Query(ctx, q)
	if err != nil {
		return Page{}, fmt.Errorf("listing files: %w", err)
	}
	return s.page(ctx, found, owner), nil
}

// Search returns a page of up to limit files whose names contain text, ignoring case. It makes
// one call to the table, and looks at no more files than table.MaxPage; so a page that is not the
// last may be short, or empty. If text is empty, Search is List.
func (s *Service) Search(
	ctx context.Context,
	owner users.User,
	area blob.Area,
	text string,
	after int64,
	limit int,
) (Page, error) {
	if text == "" {
		return s.List(ctx, owner, area, after, limit)
	}
	page, err := s.List(ctx, owner, area, after, table.MaxPage)
	page.Search, text = text, fold(text)
	page.Files = slices.DeleteFunc(page.Files, func(f *Listed) bool {
		return !strings.Contains(fold(f.Name), text)
	})
	if len(page.Files) > limit {
		page.Files = page.Files[:limit]
		page.Next = page.Files[limit-1].ID
	}
	return page, err
}

// fold returns a name for comparisons that ignore the case of letters.
func fold(name string) string { return strings.ToLower(norm.NFC.String(name)) }

func newestFirst(owner string, area blob.Area, limit int) table.Query {
	return table.Query{PK: partition(area, owner), Descending: true, Limit: limit}
}

func (s *Service) page(ctx context.Context, found table.Page, owner users.User) Page {
	page := Page{Files: make([]*Listed, 0, len(found.Items))}
	now := s.Now()
	for _, item := range found.Items {
		id, _ := strconv.ParseInt(item.Key.SK, 10, 64)
		f, err := s.records.Read(item, s.decodeRecord)
		switch {
		case err != nil || f.ID != id:
			s.unreadable(ctx, item.Key, cmp.Or(err, errors.New("it is another file's")))
		case !f.Expired(now) && f.Incarnation == owner.Incarnation:
			page.Files = append(page.Files, f)
		}
		if found.More {
			page.Next = id
		}
	}
	return page
}

// Open returns the bytes of a file. If they are missing, it calls reread, which returns the
// record as it is now. If the file was moved or removed since f was read, reread may return an
// error instead, which Open returns. If the bytes are still missing, or their number differs from
// the record's, the error is ErrLost.
func (s *Service) Open(
	ctx context.Context,
	f File,
	reread Reread,
) (b io.ReadSeekCloser, err error) {
	_, err = s.look(ctx, f, reread, func(f File) (length int64, err error) {
		if b, err = s.Blobs.Open(ctx, f.Area, f.Blob); err != nil {
			return 0, err
		}
		if length, err = b.Seek(0, io.SeekEnd); err == nil {
			_, err = b.Seek(0, io.SeekStart)
		}
		return length, err
	})
	if err != nil && b != nil {
		err = errors.Join(err, b.Close())
	}
	return b, err
}

// Reread reads the record of a file again.
type Reread func(context.Context) (File, error)

// SignGet returns a URL for the bytes of a file, after checking them as Open does. It makes one
// call to the store.
func (s *Service) SignGet(
	ctx context.Context,
	f File,
	reread Reread,
	how blob.Signed,
) (string, error) {
	f, err := s.look(ctx, f, reread, func(f File) (int64, error) {
		written, err := blob.Measure(ctx, s.Blobs, f.Area, f.Blob, true, nil)
		return written.Size, err
	})
	if err != nil {
		return "", err
	}
	url, err := s.Blobs.SignGet(ctx, f.Area, f.Blob, how)
	return url, fault.Wrap(err, "signing a download")
}

// Entries is the store's folder for the copies that SignRange makes. A rule of the buckets
// removes them.
const Entries = "entries/"

// copyTime is how long a request waits for the store's copy of a range.
const copyTime = 20 * time.Second

// SignRange returns a URL for n bytes of a file from the offset off. The store copies them to an
// object of their own. It makes two calls to the store if that day's copy is there. If copying
// takes too long, the fault is TooMany, and a repeated call resumes the copy. If the store cannot
// copy ranges, the error is blob.ErrUnsupported.
func (s *Service) SignRange(
	ctx context.Context,
	f File,
	reread Reread,
	off, n int64,
	how blob.Signed,
) (string, error) {
	copying, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	var key string
	f, err := s.look(ctx, f, reread, func(f File) (int64, error) {
		written, err := blob.Measure(ctx, s.Blobs, f.Area, f.Blob, true, nil)
		if err == nil {
			of := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", f.Blob, off, n))
			key = fmt.Sprintf("%s%s-%x", Entries, s.Now().UTC().Format(time.DateOnly), of[:16])
			err = s.Blobs.CopyRange(copying, f.Area, f.Blob, off, n, key)
		}
		return written.Size, err
	})
	if err != nil && copying.Err() != nil && ctx.Err() == nil {
		return "", &fault.Fault{
			Kind:   fault.TooMany,
			After:  5 * time.Second,
			Cause:  err,
			Detail: "the store is still preparing this file; try again",
		}
	}
	if err != nil {
		return "", err
	}
	url, err := s.Blobs.SignGet(ctx, f.Area, key, how)
	return url, fault.Wrap(err, "signing a download")
}

// look measures the bytes of a file, and compares their number with the record. If they are
// missing, it reads the record again. It returns the file at the place where its bytes are.
func (s *Service) look(
	ctx context.Context, read File, reread Reread, measure func(File) (int64, error),
) (f File, err error) {
	var length int64
	err = read.Find(func(at File) (err error) {
		f = at
		length, err = measure(at)
		return err
	}, func() (File, error) { return reread(ctx) })
	switch {
	case errors.Is(err, blob.ErrNotFound):
		err = ErrLost
	case err == nil && length != f.Length:
		err = fmt.Errorf("%w: object has %d bytes, record says %d", ErrLost, length, f.Length)
	}
	return f, fault.Wrap(err, fmt.Sprintf("opening the bytes %s of a file", f.Blob))
}

// ErrLost is returned for bytes that are missing or not the ones stored.
var ErrLost = errors.New("the bytes of a file are lost")

// user returns the user with a canonical name, or the zero User if there is none.
func (s *Service) user(ctx context.Context, name string) (users.User, error) {
	u, err := s.Users.Get(ctx, name)
	if errors.Is(err, users.ErrUnknown) {
		return users.User{}, nil
	}
	return u, err
}

// expiry returns when a file that enters an area must leave it, 0 for never.
func (s *Service) expiry(entered time.Time, area blob.Area, owner users.User) int64 {
	days := cmp.Or(owner.KeepDays, s.Retention.KeepDays)
	if area == blob.Backup {
		days = cmp.Or(owner.BackupDays, s.Retention.BackupDays)
	}
	if days == 0 {
		return 0
	}
	return entered.AddDate(0, 0, int(days)).Unix()
}

// Expiry is when a file's sender wants it to leave the user area: at a time, or some time after
// it is stored. The zero Expiry leaves that to the retention.
type Expiry struct {
	At int64 `json:"leavesAt,omitempty"` // Unix seconds
	In int64 `json:"leavesIn,omitempty"` // seconds
}

// wanted returns when a file that was stored at this time leaves the user area. That is never
// later than the retention allows; if e asks for more, the fault is Invalid.
func (s *Service) wanted(e Expiry, stored time.Time, owner users.User) (int64, error) {
	most := s.expiry(stored, blob.Files, owner)
	at := e.At
	if e.In > 0 {
		at = stored.Unix() + e.In
	}
	switch {
	case at == 0:
		return most, nil
	case most != 0 && at > most+int64(expirySlack.Seconds()):
		days := cmp.Or(owner.KeepDays, s.Retention.KeepDays)
		return most, fault.Parameter(
			"expires", "the parameter expires is too late: files are kept for %d days after their upload", days,
		)
	case most != 0:
		at = min(at, most)
	}
	return at, nil
}

// expirySlack is how far an expiry may exceed the retention: a day of the retention can have 23
// hours.
const expirySlack = time.Hour

// Listed is a file with the token of its own link. Pages share it, so it must not be changed.
type Listed struct {
	File
	Token string
}

// listed returns the file in the form that lists show.
func (s *Service) listed(f File) *Listed { return &Listed{File: f, Token: s.Links.Token(f)} }

// DecodeFile returns the file of a record. The error is table.ErrUnreadable if the record is
// damaged or another file's.
func DecodeFile(item table.Item) (f File, err error) {
	if err = item.Decode(&f); err == nil &&
		(f.key() != item.Key || blob.CheckKey(f.Blob) != nil) {
		err = fmt.Errorf("it names %s and the bytes %q: %w",
			f.key(), f.Blob, table.ErrUnreadable)
	}
	return f.Completed(), fault.Wrap(err, fmt.Sprintf("reading the record %s", item.Key))
}

func (s *Service) decodeRecord(item table.Item) (*Listed, error) {
	var f File
	if err := item.Decode(&f); err != nil {
		return nil, fmt.Errorf("reading a file's record: %w", err)
	}
	return s.listed(f.Completed()), nil
}

// unreadable logs an item that is left out so that it does not hold up anything else.
func (s *Service) unreadable(ctx context.Context, key table.Key, err error) {
	s.Log.ErrorContext(ctx, "an item of the table cannot be read",
		"key", key.String(),
		"error", err)
}
