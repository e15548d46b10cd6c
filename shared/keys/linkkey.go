package keys

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/table"
)

// LinkKey derives secrets that must be reproducible: the tokens of files, and the PINs and
// change tokens in mails. Only code that makes links has its secrets.
//
// A file's token is derived from a secret key and the file's place. So a list can show
// the same link each time while the table keeps only the token's hash: reading the
// table is not enough to open a link. Bearers are random.
//
// The key has versions; new files use the newest. A file's record says which version its links
// use, and links of a revoked version open nothing.
type LinkKey struct {
	ring    *keyring
	version int64 // 0 is the newest
}

// KeyVersion is one version of the key. They are numbered from 1.
type KeyVersion struct {
	Key     string    `json:"key,omitempty"`    // empty where no links are made
	Made    time.Time `json:"made,omitzero"`    // zero if not known
	Revoked time.Time `json:"revoked,omitzero"` // zero if it is not revoked

	secret []byte
}

// Store is where the text form of the key is kept. A process that needs the key reads it
// again once its copy is as old as Memory.
type Store struct {
	Read   func(context.Context) (string, error)
	Write  func(ctx context.Context, text string) error
	Memory time.Duration
}

const (
	// keyPatience is how long a request waits for the key to be read again. Without an answer it
	// carries on with what is known.
	keyPatience = 3 * time.Second
	// keyPause is the shortest time between two reads when an unknown version is needed: another
	// process may have just made it.
	keyPause = time.Second
)

// keyring holds the versions that a process knows.
type keyring struct {
	Store
	now func() time.Time
	log *slog.Logger

	mu       sync.Mutex
	versions []KeyVersion
	read     time.Time // when they were last read, or a read last failed
}

// Open reads the key from its store.
func Open(
	ctx context.Context,
	s Store,
	now func() time.Time,
	log *slog.Logger,
) (LinkKey, error) {
	r := &keyring{Store: s, now: now, log: log}
	return LinkKey{ring: r}, r.load(ctx)
}

// Parse reads the text form of a key: a token from RandomToken, which is version 1,
// or a JSON array of all versions.
func Parse(text string) (LinkKey, error) {
	versions, err := parseVersions(text)
	return LinkKey{ring: &keyring{versions: versions}}, err
}

func parseVersions(text string) (all []KeyVersion, err error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") {
		all = []KeyVersion{{Key: text}}
	} else if json.Unmarshal([]byte(text), &all) != nil || len(all) == 0 {
		return nil, errors.New("the link key is not a JSON array of versions") // the cause might show it
	}
	for i, v := range all {
		all[i].secret, err = base64.RawURLEncoding.DecodeString(v.Key)
		if n := len(all[i].secret); err != nil || n != TokenSize && (n != 0 || text == "") {
			return nil, errors.New("the link key is not 43 characters of base64url")
		}
	}
	return all, nil
}

// load reads the versions. The caller holds the lock, or is the only user so far.
func (r *keyring) load(ctx context.Context) error {
	text, err := r.Read(ctx)
	r.read = r.now() // set late, so that functions that waited for each other at their start do not meet again
	if err != nil {
		return err
	}
	all, err := parseVersions(text)
	if err == nil {
		r.versions = all
	}
	return err
}

// known returns the versions. It reads them again first if that is due.
func (r *keyring) known(version int64) []KeyVersion {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	due := r.Memory
	if version > int64(len(r.versions)) {
		due = keyPause
	}
	if r.Read != nil && r.now().Sub(r.read).Abs() >= due {
		ctx, cancel := context.WithTimeout(context.Background(), keyPatience)
		defer cancel()
		if err := r.load(ctx); err != nil {
			r.log.Warn("re-reading the link key failed", "error", err)
		}
	}
	return r.versions
}

// Versions returns all versions, oldest first.
func (k LinkKey) Versions() []KeyVersion { return k.ring.known(0) }

// Version returns the version for new files: 0 for the first, as in records from before
// there were versions.
func (k LinkKey) Version() int64 {
	if n := len(k.Versions()); n > 1 {
		return int64(n)
	}
	return 0
}

// Of returns the key in one version, as Version numbers them. If that version is lost, the newest
// stands in, and its tokens open nothing.
func (k LinkKey) Of(version int64) LinkKey { return LinkKey{k.ring, max(1, version)} }

// Revoked reports whether a version's links were revoked.
func (k LinkKey) Revoked(version int64) bool {
	version = max(1, version)
	all := k.ring.known(version)
	return version <= int64(len(all)) && !all[version-1].Revoked.IsZero()
}

// File returns the token of a file in one of its owner's areas.
func (k LinkKey) File(area blob.Area, owner string, id int64) string {
	return encode(k.derive("file", string(area), owner, strconv.FormatInt(id, 10)))
}

// Renewed returns the token that a file has after its own link was renewed this many times.
func (k LinkKey) Renewed(area blob.Area, owner string, id, times int64) string {
	return encode(k.derive(
		"file",
		string(area),
		owner,
		strconv.FormatInt(id, 10),
		strconv.FormatInt(times, 10),
	))
}

// Recipient returns the token of the link to a file that one recipient gets, in the
// notice with this id.
func (k LinkKey) Recipient(area blob.Area, owner string, id int64, notice string) string {
	return encode(k.derive("recipient", string(area), owner, strconv.FormatInt(id, 10), notice))
}

// Request returns the token of the link of a request, which its owner made. It carries the owner
// and the id, which RequestPlace reads. id has RequestID characters.
func (k LinkKey) Request(owner, id string) string {
	return requestPrefix + encode(append(k.derive("request", owner, id), id+owner...))
}

// IsRequest reports whether a token is that of a request's link in this version of the key.
func (k LinkKey) IsRequest(token, owner, id string) bool {
	return hmac.Equal([]byte(k.Request(owner, id)), []byte(token))
}

// Part returns the signature of a request that sends one part of an upload session.
// what is everything that the signature covers.
func (k LinkKey) Part(what ...string) string {
	return encode(k.derive(append([]string{"part"}, what...)...))
}

// IsPart reports whether a signature is from Part, in any version that is not revoked.
func (k LinkKey) IsPart(signature string, what ...string) bool {
	return k.isOne(signature, func(k LinkKey) string { return k.Part(what...) })
}

// isOne reports whether any version that is not revoked makes this token.
func (k LinkKey) isOne(token string, one func(LinkKey) string) bool {
	for version := len(k.Versions()); version > 0; version-- {
		of := k.Of(int64(version))
		if !k.Revoked(of.version) && hmac.Equal([]byte(one(of)), []byte(token)) {
			return true
		}
	}
	return false
}

// Nonce returns a nonce for PIN and Change. It names its version, unless that is the first.
func (k LinkKey) Nonce(random io.Reader) (string, error) {
	nonce, err := RandomToken(random)
	if version := k.Version(); version > 0 {
		nonce = strconv.FormatInt(version, 10) + "." + nonce
	}
	return nonce, err
}

// PIN returns the 8 digits for a nonce.
func (k LinkKey) PIN(nonce string) string {
	return fmt.Sprintf("%08d", binary.BigEndian.Uint64(k.ofNonce(nonce).
		derive("pin", nonce))%100_000_000)
}

// Change returns the change token for a nonce. So a mail can have the link, while the table has
// only the nonce and the token's hash.
func (k LinkKey) Change(nonce string) string {
	return encode(k.ofNonce(nonce).derive("change", nonce))
}

// ofNonce returns the key in the version that a nonce names.
func (k LinkKey) ofNonce(nonce string) LinkKey {
	version, _, _ := strings.Cut(nonce, ".")
	v, _ := strconv.ParseInt(version, 10, 64)
	return k.Of(v)
}

// Stop returns the token that lets the owner of an e-mail address stop mail to it. The
// token carries the address, and is always the same for one version.
func (k LinkKey) Stop(address string) string {
	address = strings.ToLower(strings.TrimSpace(address))
	return encode(append(k.derive("stop", address), address...))
}

// StopAddress returns the address that a token from Stop carries. ok is false for any
// other token, and if its version was revoked.
func (k LinkKey) StopAddress(token string) (address string, ok bool) {
	address, ok = TokenName(token)
	if !ok || !k.isOne(token, func(k LinkKey) string { return k.Stop(address) }) {
		return "", false
	}
	return address, true
}

// derive returns the HMAC-SHA256 of the parts, each ended by a byte that no part has.
func (k LinkKey) derive(parts ...string) []byte {
	all := k.ring.known(k.version)
	var secret []byte
	if n := len(all); n > 0 {
		secret = all[min(n, int(cmp.Or(k.version, int64(n))))-1].secret
	}
	if len(secret) != TokenSize {
		panic("keys: link key not set") // without a key, no links
	}
	mac := hmac.New(sha256.New, secret)
	io.WriteString(mac, strings.Join(parts, "\x00")+"\x00")
	return mac.Sum(nil)
}

// Rotate makes a new version for the links of new files, and returns the number of the
// newest. If revoke names a version, it ends that version's links, and makes a new one only if
// that was the newest. All processes know of it after Propagation.
func (k LinkKey) Rotate(
	ctx context.Context,
	t table.Table,
	random io.Reader,
	revoke int,
) (newest int, err error) {
	r := k.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return 0, fmt.Errorf("reading the link key: %w", err)
	}
	all, now := slices.Clone(r.versions), r.now().UTC().Truncate(time.Second)
	if revoke < 0 || revoke > len(all) {
		return 0, fmt.Errorf("there is no version %d of the link key", revoke)
	}
	if revoke == 0 || revoke == len(all) {
		key, err := RandomToken(random)
		if err != nil {
			return 0, err
		}
		all = append(all, KeyVersion{Key: key, Made: now})
	}
	if revoke > 0 && all[revoke-1].Revoked.IsZero() {
		all[revoke-1].Revoked = now
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = r.Write(ctx, string(text))
	}
	if err == nil {
		err = r.load(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("storing the link key: %w", err)
	}
	for i := range all {
		all[i].Key = "" // the functions that only open links get no key
	}
	if text, err = json.Marshal(all); err == nil {
		err = t.Write(ctx, table.Put(versionsKey(), versionsItem{table.Format, string(text)}))
	}
	return len(all), fault.Wrap(err, "storing the versions of the link key")
}

// versionsItem has the versions without their keys.
type versionsItem struct {
	V    int64  `json:"v"`
	Text string `json:"text"`
}

func versionsKey() table.Key { return table.Key{PK: "linkkey", SK: "versions"} }

// PublicVersions reads the versions, without their keys, from the table. A key that was never
// changed is not there, and has one version.
func PublicVersions(ctx context.Context, t table.Table) (string, error) {
	item := versionsItem{Text: "[{}]"}
	err := t.Get(ctx, versionsKey(), &item)
	return item.Text, fault.Wrap(err, "reading the versions of the link key", table.ErrNotFound)
}

// Propagation returns how long it takes until all processes know of a change.
func (k LinkKey) Propagation() time.Duration { return k.ring.Memory + keyPatience }
