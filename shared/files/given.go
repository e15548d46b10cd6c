package files

import (
	"context"
	"time"

	"ferry/shared/fault"
	"ferry/shared/table"
)

// Config.LinkBytes bounds what a link gives out in a clock hour. The link's item has the bytes
// that it ever gave, and how many those were when the hour began. Answers that are not counted,
// such as most ranges, cost no call: their bytes wait in this process until a count carries
// them, or there are many. Here, bytes count as soon as their answer begins: the table shows
// them only a moment after it ends.
const (
	// leastDownloads is how often a file can be downloaded through a link in an hour,
	// however large it is.
	leastDownloads = 10
	// Up to 1/givenShare of the bound may wait in a process.
	givenShare = 1000
)

func hourOf(t time.Time) int64 { return t.Truncate(time.Hour).Unix() }

// MayGive notes the start of an answer of n bytes; the caller calls Gave at its end. If the link
// has reached its bound for this hour, answers in progress included, it returns a TooMany fault
// instead.
func (s *Service) MayGive(l Link, n int64) (err error) {
	if s.LinkBytes == 0 {
		return nil
	}
	now := s.Now()
	s.note(l.Token, func(c *crowd) {
		stored := int64(0)
		if l.Hour == hourOf(now) {
			stored = l.Given - l.GivenBefore
		}
		if c.hour != hourOf(now) {
			c.hour, c.sum = hourOf(now), 0
		}
		// The link may have been read before it showed what this process, or others, gave.
		c.sum = max(c.sum, stored+c.given+c.underWay)
		if c.sum < max(s.LinkBytes, leastDownloads*l.File.Length) {
			c.sum, c.underWay = c.sum+n, c.underWay+n
			return
		}
		err = fault.Wait(time.Unix(c.hour, 0).Add(time.Hour).Sub(now),
			"this link has given out %d bytes in this hour, which is the limit", c.sum)
	})
	return err
}

// Gave notes the end of an answer: begun is what MayGive was told, had the bytes that were sent.
// The caller calls CountDownload next if the answer counts, and then Settle.
func (s *Service) Gave(l Link, begun, had int64) {
	if s.LinkBytes > 0 && begun+had > 0 {
		s.note(l.Token, func(c *crowd) { c.sum, c.underWay, c.given = c.sum+had-begun, c.underWay-begun, c.given+had })
	}
}

// Settle writes the waiting bytes if there are many.
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
		s.note(l.Token, func(c *crowd) { c.given += given })
	}
	// The condition fails if the file was moved meanwhile.
	return fault.Wrap(err, "noting what a link gave", table.ErrCondition)
}

// carry adds the waiting bytes to an update of the link's item. If the write fails, the caller
// gives them back. Only a link read in this hour may start the hour's sum: one read earlier has
// an old sum.
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
