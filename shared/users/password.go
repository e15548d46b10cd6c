package users

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"ferry/shared/fault"
)

// Params are argon2id's cost parameters (RFC 9106). The defaults are the smallest
// that OWASP's password storage cheat sheet allows.
type Params struct {
	Memory  uint32 // KiB
	Time    uint32 // passes
	Threads uint8
}

// DefaultParams returns parameters that cost about 30 ms of one core, and 19 MiB.
func DefaultParams() Params { return Params{Memory: 19 * 1024, Time: 2, Threads: 1} }

const (
	saltSize = 16
	hashSize = 32
	// MaxPassword is the most bytes that are hashed: 128 characters of any script.
	MaxPassword = 128 * 4
	// remember is how long a right password need not be hashed again.
	remember = 60 * time.Second
	// maxRemembered is how many right passwords are remembered.
	maxRemembered = 10_000
)

// Hasher hashes and verifies passwords, at most one per CPU at a time so that a burst
// of logins cannot exhaust memory. A process needs one. It is safe for concurrent use.
type Hasher struct {
	params Params
	random io.Reader
	now    func() time.Time
	slots  chan struct{}
	dummy  string
	idKey  func(password, salt []byte, time, memory uint32, threads uint8, size uint32) []byte

	// right caches passwords that matched a hash. Its keys are HMACs with secret, and cover the
	// hash, so that a changed password misses at once.
	secret []byte
	mu     sync.Mutex
	right  map[[sha256.Size]byte]time.Time // until when
}

// NewHasher returns a Hasher. random must be safe for concurrent use.
func NewHasher(params Params, random io.Reader, now func() time.Time) (*Hasher, error) {
	h := &Hasher{
		params: params,
		random: random,
		now:    now,
		slots:  make(chan struct{}, runtime.GOMAXPROCS(0)),
		secret: make([]byte, sha256.Size),
		right:  map[[sha256.Size]byte]time.Time{},
		idKey:  argon2.IDKey,
		// An unknown user must take as long as a wrong password. So Verify hashes
		// with this dummy instead, and accepts no password for it.
		dummy: phc(params, make([]byte, saltSize), make([]byte, hashSize)),
	}
	_, err := io.ReadFull(random, h.secret)
	return h, fault.Wrap(err, "reading randomness")
}

// Hash returns the PHC string of a password. It waits for a free CPU.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltSize)
	if _, err := io.ReadFull(h.random, salt); err != nil {
		return "", fmt.Errorf("making a salt: %w", err)
	}
	sum, err := h.compute(ctx, h.params, password, salt)
	if err != nil {
		return "", err
	}
	return phc(h.params, salt, sum), nil
}

// Verify reports whether password matches a PHC string. An empty string stands for an
// unknown user: Verify takes the same time and reports false.
func (h *Hasher) Verify(ctx context.Context, hash, password string) (bool, error) {
	stored := cmp.Or(hash, h.dummy)
	id := h.Mark(stored, password)
	if h.remembered(id) {
		return true, nil
	}
	params, salt, want, err := parsePHC(stored)
	if err != nil {
		return false, err
	}
	got, err := h.compute(ctx, params, password, salt)
	if err != nil {
		return false, err
	}
	right := subtle.ConstantTimeCompare(got, want) == 1 && hash != ""
	if right {
		h.keep(id)
	}
	return right, nil
}

// Outdated reports whether a hash's parameters are weaker than today's.
func (h *Hasher) Outdated(hash string) bool {
	p, _, _, err := parsePHC(hash)
	return err == nil && (p.Memory < h.params.Memory || p.Time < h.params.Time)
}

func (h *Hasher) compute(
	ctx context.Context,
	p Params,
	password string,
	salt []byte,
) ([]byte, error) {
	// The same password typed on two systems may differ in its code points.
	text := norm.NFC.Bytes([]byte(password))
	if len(text) > MaxPassword {
		text = text[:MaxPassword+1] // this cannot match, but costs as much as a password that can
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting to hash a password: %w", ctx.Err())
	}
	return h.idKey(text, salt, p.Time, p.Memory, p.Threads, hashSize), nil
}

// Mark returns a keyed hash of a password for something, which only this process can make.
func (h *Hasher) Mark(of, password string) [sha256.Size]byte {
	mac := hmac.New(sha256.New, h.secret)
	io.WriteString(mac, of+"\x00"+password)
	return [sha256.Size]byte(mac.Sum(nil))
}

// AtOnce returns how many passwords are hashed at the same time.
func (h *Hasher) AtOnce() int { return cap(h.slots) }

func (h *Hasher) remembered(id [sha256.Size]byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := h.right[id].Sub(h.now())
	return left > 0 && left <= remember
}

func (h *Hasher) keep(id [sha256.Size]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.right) >= maxRemembered {
		clear(h.right)
	}
	h.right[id] = h.now().Add(remember)
}

// phc returns a hash in the PHC string format,
// https://github.com/P-H-C/phc-string-format.
func phc(p Params, salt, sum []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, p.Memory, p.Time, p.Threads, b64.EncodeToString(salt), b64.EncodeToString(sum))
}

// The highest cost at which a stored hash is verified: a damaged one must not stop the service.
const (
	maxMemory = 1 << 20 // KiB
	maxTime   = 100     // passes
)

var errPHC = errors.New("the stored password hash is not an argon2id hash")

func parsePHC(s string) (p Params, salt, sum []byte, err error) {
	fields := strings.Split(s, "$")
	if len(fields) != 6 {
		return p, nil, nil, errPHC
	}
	_, _ = fmt.Sscanf(fields[3], "m=%d,t=%d,p=%d", &p.Memory, &p.Time, &p.Threads)
	salt, _ = base64.RawStdEncoding.DecodeString(fields[4])
	sum, _ = base64.RawStdEncoding.DecodeString(fields[5])
	// A field that is missing or malformed makes the rebuilt string differ.
	if phc(p, salt, sum) != s || len(sum) != hashSize ||
		p.Time == 0 || p.Time > maxTime || p.Threads == 0 || p.Memory > maxMemory {
		return p, nil, nil, errPHC
	}
	return p, salt, sum, nil
}

// The allowed length of a password, in characters.
const (
	ShortestPassword = 10
	LongestPassword  = 128
)

// common lists, one per line, passwords of ten characters or more that attackers try
// first.
//
//go:embed common.txt
var common string

// CheckPassword returns an Invalid fault for a password that users may not choose: too
// short, too long, not text, common, or made from the user's name.
func CheckPassword(password, user string) error {
	password = norm.NFC.String(password)
	n := utf8.RuneCountInString(password)
	switch {
	case strings.ContainsRune(password, utf8.RuneError) ||
		strings.ContainsFunc(password, unicode.IsControl):
		return fault.New(fault.Invalid, "a password must be text without control characters")
	case n < ShortestPassword || n > LongestPassword:
		return fault.New(
			fault.Invalid,
			"a password must have %d to %d characters; this one has %d",
			ShortestPassword,
			LongestPassword,
			n,
		)
	case strings.Contains(
		"\n"+common,
		"\n"+strings.ToLower(password)+"\n",
	), distinct(password) < 4, madeOf(password, user):
		return fault.New(fault.Invalid, "the password is too easy to guess; choose another")
	}
	return nil
}

// distinct counts a text's different characters, ignoring case.
func distinct(s string) int {
	all := []rune(strings.ToLower(s))
	slices.Sort(all)
	return len(slices.Compact(all))
}

// madeOf reports whether a password is little more than the user's name.
func madeOf(password, user string) bool {
	rest := strings.ReplaceAll(strings.ToLower(password), user, "")
	return len(user) >= 3 &&
		rest != strings.ToLower(password) &&
		utf8.RuneCountInString(rest) < 5
}
