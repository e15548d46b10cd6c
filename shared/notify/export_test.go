package notify

import "context"

// Claim makes a notice a sender's own, as a test of what follows when that
// sender then dies must.
func (s *Sender) Claim(ctx context.Context, n Notice) (bool, error) { return s.claim(ctx, &n) }

// Settle ends a claim, as a sender does that comes back when its lease is over.
func (s *Sender) Settle(ctx context.Context, n Notice, outcome error) error {
	_, err := s.settle(ctx, n, outcome)
	return err
}

// What tests look at.
const (
	Lease    = lease
	GiveUp   = giveUp
	Parallel = parallel
	Batch    = batch
	Shards   = shards
)

// FileKey is where the sender looks for the notice's file.
var FileKey = Notice.fileKey

// Partition names a shard.
var Partition = partition

// Backoff is how long the sender waits after so many tries.
var Backoff = (*Sender).backoff

// SayLang is the language that speaks for a tag.
func SayLang(tag string) string { return say(tag).lang }

// Display is how a text by a user is shown.
func Display(s string) string { return display(oneLine(s)) }

// Shorten takes the middle out of a name.
var Shorten = shorten

// Length is a number of bytes in a language.
func Length(lang string, n int64) string { return say(lang).length(n) }

// Date is a time in a language.
var Date = func(lang string, unix int64) string { return say(lang).day(unix) }
