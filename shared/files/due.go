package files

import (
	"context"
	"fmt"
	"hash/crc32"
	"iter"
	"strconv"
	"strings"
	"time"

	"ferry/shared/blob"
	"ferry/shared/keys"
	"ferry/shared/table"
)

// A file's bytes are stored under a key that begins with a shard and the UTC day on which the
// file leaves its area: D7-2026-12-21/ID-RANDOM-OWNER. A sweep that lists the days up to today
// finds exactly what is due. S3 allows as many requests for each shard as for a whole bucket with
// one prefix.
//
// The day is a hint; the record decides. An object that must be looked at on another day has a
// due item. If the record says an earlier day, or sweeps may be past the key's day, the
// transaction that writes the record also writes the item. If the record says a later day, or
// something failed, the sweep writes the item before it is past the key's day.

const (
	shards = 16
	// never is the day of files without an expiry. It sorts after all days.
	never = "never"
	// randomLength is how many characters of a key are random.
	randomLength = 22
	// dueItems is the partition of the due items, sorted by day. They are rare, so one partition
	// is enough.
	dueItems = "due"
	// year10000 is the time from which days no longer sort, in Unix seconds.
	year10000 = 253_402_300_800
)

func dayOf(expires int64) string {
	if expires == 0 || expires >= year10000 {
		return never
	}
	return time.Unix(expires, 0).UTC().Format(time.DateOnly)
}

// folder returns the first element of the keys of a shard and a day.
func folder(shard int, day string) string { return fmt.Sprintf("D%x-%s", shard, day) }

// blobKey returns a new, unique key for the bytes of a file that expires at this time.
func (s *Service) blobKey(owner string, id, expires int64) (string, error) {
	random, err := keys.RandomToken(s.Random)
	if err != nil {
		return "", err
	}
	shard := int(crc32.ChecksumIEEE([]byte(random)) % shards)
	return fmt.Sprintf("%s/%d-%s-%s",
		folder(shard, dayOf(expires)), id, random[:randomLength], owner), nil
}

// keyParts are the parts of a key.
type keyParts struct {
	owner   string
	id      int64
	session string // ID of the session that made the object, if one did
	day     string
}

// ParseBlobKey returns the owner and the id of the file whose bytes are stored under a
// key. ok is false for keys that Ferry does not make.
func ParseBlobKey(key string) (owner string, id int64, ok bool) {
	k, ok := parseKey(key)
	return k.owner, k.id, ok
}

// stored returns what an object shows about its file: area, length, key, and the owner and id in
// the key.
func stored(area blob.Area, o blob.Object) File {
	owner, id, _ := ParseBlobKey(o.Key)
	return File{Owner: owner, ID: id, Area: area, Blob: o.Key, Length: o.Size}
}

// Objects yields what each object of both areas shows about its file.
func Objects(ctx context.Context, s blob.Store) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for _, area := range blob.Areas() {
			for after, more := "", true; more; {
				page, err := s.List(ctx, area, after, blob.MaxList)
				if err != nil {
					yield(File{}, fmt.Errorf("listing the %s area: %w", area, err))
					return
				}
				for _, o := range page {
					after = o.Key
					if !yield(stored(area, o), nil) {
						return
					}
				}
				more = len(page) == blob.MaxList
			}
		}
	}
}

func parseKey(key string) (k keyParts, ok bool) {
	_, name, _ := strings.Cut(key, "/")
	digits, rest, _ := strings.Cut(name, "-")
	_, day := parseFolder(key)
	id, err := strconv.ParseInt(digits, 10, 64)
	if day == "" || err != nil || strconv.FormatInt(id, 10) != digits ||
		len(rest) <= randomLength+1 || rest[randomLength] != '-' {
		return k, false
	}
	return keyParts{
		rest[randomLength+1:], id, name[:len(name)-len(rest)+randomLength], day,
	}, true
}

// parseFolder returns the shard and the day with which a key begins. The day is empty for
// a key that begins with anything else.
func parseFolder(key string) (shard int, day string) {
	first, _, _ := strings.Cut(key, "/")
	if len(first) < 4 || first[0] != 'D' || first[2] != '-' {
		return 0, ""
	}
	shard = strings.IndexByte("0123456789abcdef", first[1])
	if shard < 0 {
		return 0, ""
	}
	return shard, first[3:]
}

// dueItem names an object that a sweep must look at on the day in its key.
type dueItem struct {
	V        int64     `json:"v"`
	Area     blob.Area `json:"area"`
	Key      string    `json:"key"`
	Modified int64     `json:"modified"` // Unix seconds
}

func due(day string, area blob.Area, o blob.Object) table.Op {
	item := dueItem{V: table.Format, Area: area, Key: o.Key, Modified: o.Modified.Unix()}
	return table.Put(table.Key{PK: dueItems, SK: day + "/" + string(area) + "/" + o.Key}, item)
}

// missed returns the operation that makes a sweep look at a file on the day it expires, if its
// key has a later day, or a day that sweeps have passed.
func (s *Service) missed(f File) []table.Op {
	day := dayOf(f.Expires)
	k, ok := parseKey(f.Blob)
	if !ok || day == never || day >= k.day && k.day >= dayOf(s.Now().Unix()) {
		return nil
	}
	return []table.Op{due(day, f.Area, blob.Object{Key: f.Blob, Modified: s.Now()})}
}
