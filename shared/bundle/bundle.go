// Package bundle makes and reads bundles: several files and folders in one ZIP64 archive, stored
// and not deflated. The sender makes the archive while sending it. The sender and the service use
// this package alike. Start reading with Plan and Read.
//
// A bundle has exactly one form, so that its layout follows from names and lengths, and everything
// but the bytes of the files follows from its directory. The numbers are sections of APPNOTE 6.3.10.
//
//   - The entries lie one behind the other: local header, bytes, next local header. The first is at
//     offset 0. The central directory follows the last.
//   - A local header (4.3.7) has 30 bytes, the path, the modification time and, for a file of at
//     least 0xFFFFFFFF bytes, a ZIP64 field with its length twice. The CRC-32 is in the header. There
//     is no data descriptor: some programs refuse stored entries that have one.
//   - A record of the directory (4.3.12) has 46 bytes, the path, the modification time and, if
//     needed, a ZIP64 field (4.5.3) with those values that are at least 0xFFFFFFFF: the length twice,
//     the offset of the local header.
//   - The modification time is the extra field 0x5455 with 5 bytes: the flags 1, and Unix seconds
//     from 0 to 2^31-1, which all programs read alike. The MS-DOS fields (4.4.6) have the same time
//     in UTC, rounded down to 2 seconds, or the start of 1980 for an earlier one.
//   - The version needed is 45 for a header or record with a ZIP64 field, otherwise 20. The flags
//     are 0x0800: the path is UTF-8. The method is 0. The archive was made by version 45 on Unix.
//   - The external attributes are the mode shifted left by 16: 0100644 for a file, 0100755 for an
//     executable one, 040755 for a folder, which also has the MS-DOS bit 0x10.
//   - The path of a folder ends in a slash. Its length and its CRC-32 are 0. Folders need no entry.
//   - The ZIP64 end record (4.3.14, of 56 bytes) and its locator (4.3.15) are there only if the
//     directory's offset is at least 0xFFFFFFFF. The number of entries and the directory's length
//     always fit the end record (4.3.16).
//   - All other fields are 0. There are no comments, no other extra fields, and nothing before,
//     between or after all this.
package bundle

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Limits of a bundle.
const (
	// MaxEntries is the most files and folders.
	MaxEntries = 10_000
	// MaxDirectory is the longest central directory in bytes, without the end records.
	MaxDirectory = 4 << 20
	// maxLength bounds the bytes before the directory, so that no sum overflows.
	maxLength = 1 << 62
)

// Entry is a file or folder of a bundle.
type Entry struct {
	// Path is relative and has forward slashes; CheckPath has the rules. A folder's ends in one.
	Path string
	// Length is in bytes.
	Length int64
	// Modified is kept in whole seconds, from 1970 to January 2038. Other times become the nearest.
	Modified time.Time
	// Executable is false for folders.
	Executable bool
	// CRC32 is the checksum of the bytes (IEEE 802.3). Plan does not need it.
	CRC32 uint32

	// Header and Offset are where the local header and the bytes of the file begin, in bytes from
	// the start of the bundle. The header ends where the bytes begin. Plan and Read set both.
	Header, Offset int64
}

// IsFolder reports whether the entry is a folder.
func (e Entry) IsFolder() bool { return strings.HasSuffix(e.Path, "/") }

// Error says why something is not a bundle or cannot become one, in a sentence for its sender.
// All other errors of this package come from the underlying readers and writers.
type Error struct {
	// Path is that of the entry, or "" for the bundle itself. It may have any bytes.
	Path string
	// Reason is the rest of the sentence.
	Reason string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "the bundle " + e.Reason
	}
	return fmt.Sprintf("%.300q %s", e.Path, e.Reason)
}

// Layout says where everything in a bundle lies. Nothing changes it, so several goroutines may use
// it at once.
type Layout struct {
	// Entries are in the order of the archive.
	Entries []Entry
	// Directory is where the central directory begins, in bytes from the start of the bundle.
	Directory int64
	// Length is that of the whole bundle in bytes.
	Length int64

	keys []string // of the paths, sorted; see place
	size int64    // of the directory, without the end records
}

// Plan lays out a bundle. It needs no checksums. An error is an *Error.
func Plan(entries []Entry) (*Layout, error) {
	l := &Layout{}
	for _, e := range entries {
		if err := l.add(e); err != nil {
			return nil, err
		}
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	return l, nil
}

// add checks an entry and puts it after the others.
func (l *Layout) add(e Entry) error {
	if len(l.Entries) == MaxEntries {
		return &Error{Reason: fmt.Sprintf("has more than %d entries", MaxEntries)}
	}
	if err := l.check(e); err != nil {
		return err
	}
	if err := l.place(e.Path); err != nil {
		return err
	}
	e.Modified = keptTime(e.Modified)
	e.Executable = e.Executable && !e.IsFolder()
	e.Header = l.Directory
	e.Offset = e.Header + int64(len(e.local()))
	l.size += int64(len(e.record()))
	if l.size > MaxDirectory {
		return &Error{Reason: fmt.Sprintf("has names that need more than %d MiB together",
			MaxDirectory>>20)}
	}
	l.Directory = e.Offset + e.Length
	l.Entries = append(l.Entries, e)
	return nil
}

// check checks one entry by itself.
func (l *Layout) check(e Entry) error {
	switch err := CheckPath(e.Path); {
	case err != nil:
		return err
	case e.Length < 0 || e.Length > maxLength-l.Directory:
		return &Error{e.Path, "has an impossible length"}
	case e.IsFolder() && e.Length > 0:
		return &Error{e.Path, "is a folder with bytes"}
	case e.Length == 0 && e.CRC32 != 0:
		return &Error{e.Path, "has a CRC-32 but no bytes"}
	}
	return nil
}

// finish computes the length, after the last entry.
func (l *Layout) finish() error {
	if len(l.Entries) == 0 {
		return &Error{Reason: "has no entries"} // some programs refuse an empty archive
	}
	l.Length = l.Directory + l.size + int64(len(l.end()))
	return nil
}

// keptTime returns the time that the archive keeps.
func keptTime(t time.Time) time.Time {
	return time.Unix(min(max(t.Unix(), 0), math.MaxInt32), 0).UTC()
}
