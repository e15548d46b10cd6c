package files

import (
	"context"
	"time"

	"ferry/shared/envelope"
	"ferry/shared/table"
)

// What a link gives out in an hour of the clock is bounded (Config.LinkBytes). Its item has
// all the bytes that it ever gave, and how many those were when the hour began. Answers
// that are not counted, such as most ranges, cost no call: their bytes wait in this process
// for a count to carry them, or until they are many.
const (
	// leastDownloads is how often a file can be downloaded through a link in an hour,
	// however large it is.
	leastDownloads = 10
	// givenShare is the part of the bound that may wait in a process.
	givenShare = 1000
)

func hourOf(t time.Time) int64 { return t.Truncate(time.Hour).Unix() }

// MayGive returns a TooMany fault if a link has given out as much as it may in this hour.
func (s *Service) MayGive(l Link) error {
	sum, now := s.crowd(l.Token).given, s.Now()
	if l.Hour == hourOf(now) {
		sum += l.Given - l.GivenBefore
	}
	if s.LinkBytes == 0 || sum < max(s.LinkBytes, leastDownloads*l.File.Length) {
		return nil
	}
	return envelope.WaitFault(time.Unix(hourOf(now), 0).Add(time.Hour).Sub(now),
		"this link has given out %d bytes in this hour, which is the limit", sum)
}

// Gave notes that an answer had n bytes. The caller calls CountDownload next if the
// answer counts, and then Settle.
func (s *Service) Gave(l Link, n int64) {
	if s.LinkBytes > 0 && n > 0 {
		s.note(l.Token, func(c *crowd) { c.given += n })
	}
}

// Settle writes the bytes that wait, if they are many.
func (s *Service) Settle(ctx context.Context, l Link) error {
	if s.LinkBytes == 0 || s.crowd(l.Token).given <= s.LinkBytes/givenShare {
		return nil
	}
	op, given := s.carry(table.Update(linkKey(l.Token)).If(table.Exists()), l)
	if given == 0 { // another answer has just written them
		return nil
	}
	ctx, cancel := s.within(ctx, s.CountWait)
	defer cancel()
	err := s.Table.Write(ctx, op.Delay())
	if err != nil {
		s.Gave(l, given)
	}
	// The condition fails if the file was moved meanwhile.
	return envelope.Wrap(err, "noting what a link gave", table.ErrCondition)
}

// carry adds the bytes that wait to an update of the link's item. If the write fails, the
// caller gives them back. The first one in an hour notes where it begins: a download that
// began in an earlier hour leaves that to others, as it read an old sum.
func (s *Service) carry(op table.Op, l Link) (with table.Op, given int64) {
	if s.crowd(l.Token).given == 0 {
		return op, 0
	}
	s.note(l.Token, func(c *crowd) { given, c.given = c.given, 0 })
	op = op.Add("given", given)
	if hour := hourOf(s.Now()); l.Hour != hour && l.read == hour {
		op = op.Set("hour", hour).Set("givenBefore", l.Given)
	}
	return op, given
}
