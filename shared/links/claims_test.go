package links_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/service"
	"ferry/shared/table"
)

// story is what happens to a file's own link.
type story struct {
	caller
	file, before files.File        // with the link as it is, and as it was before it was renewed
	claims       map[string]string // of each downloader
}

// do is a step of those who download.
func (s *story) do(step string) error {
	verb, what, _ := strings.Cut(step, " ")
	l, err := s.links.Find(s.Context(), s.file.Area, s.links.Token(s.file), s.claims[what])
	switch verb {
	case "open":
		if err == nil && l.Guarded() {
			return errors.New("it needs a claim")
		}
	case "open-earlier":
		return failure(s.links.Find(s.Context(), s.file.Area, s.links.Token(s.before), ""))
	case "claim":
		s.claims[what], err = s.links.NewClaim(l)
	case "take":
		if err == nil {
			_, err = s.links.Take(s.Context(), l, s.claims[what], what)
		}
	case "resume":
		if l, err = s.links.GoOn(l, s.file.Area, what); err == nil && !l.HasTaken() {
			return errors.New("this is another download")
		}
	case "left":
		left, _ := l.Left()
		return fmt.Errorf("%d", left)
	default:
		return s.change(verb, what)
	}
	return err
}

// change is a step of the file's owner, or of time.
func (s *story) change(verb, what string) (err error) {
	ctx, all := s.Context(), s.Service.Files()
	number, _ := strconv.ParseInt(what, 10, 64)
	span, _ := time.ParseDuration(what)
	edit := func(c links.Change) error {
		return failure(s.links.Edit(ctx, all, s.Newest("alice"), links.Own, true, c))
	}
	switch verb {
	case "limit":
		return edit(links.Change{Limit: &number})
	case "password":
		return edit(links.Change{Password: &what})
	case "until":
		end := s.Clock.Now().Add(span).Unix()
		return edit(links.Change{Until: &end})
	case "end":
		return edit(links.Change{End: true})
	case "renew":
		s.before = s.file
		s.file, err = s.links.RenewOwn(ctx, all, s.Newest("alice"))
		return err
	case "keep":
		return failure(all.Change(ctx, s.user(), 1, files.Edit{Expiry: &files.Expiry{In: int64(span.Seconds())}}))
	case "share":
		return s.share(links.Order{})
	case "delete":
		return failure(all.Delete(ctx, s.user(), 1))
	case "restore":
		return failure(all.Restore(ctx, s.user(), 1))
	case "lose":
		return s.Data.Table.Write(ctx, table.Delete(links.Items{}.ItemKey(s.links.Token(s.file))))
	case "drop":
		return failure(s.Data.Table.DeleteExpired(ctx, s.Clock.Now()))
	case "mark":
		s.mark(s.Newest("alice"), files.Status(what))
	case "revoke":
		s.rotate(1)
	case "wait":
		s.Clock.Advance(span)
	case "meanwhile":
		s.Calls.Once("table.Write", func() { s.must(s.do(what)) })
	default:
		s.Fatalf("there is no step %s", verb)
	}
	return nil
}

// forever keeps files without end.
func forever(s *service.Settings, _ *local.ServiceOptions) { s.Retention.KeepDays = 0 }

func TestALinkGivesWhatItsLimitsAllow(t *testing.T) {
	t.Parallel()
	apitest.Stories(t, map[string]string{
		"claims take nothing, and a download is taken once for each": `
			limit 2
			open > it needs a claim
			claim ann
			claim bob
			claim eve
			take ann
			take ann
			left > 1
			take bob
			take eve > 401 used up
			open > 401 used up
			take ann
			limit 3
			take eve
			limit 1
			claim tom
			take tom > 401 used up
			limit 0
			open`,
		"a claim lasts for an hour, and for a day once it has taken a download": `
			limit 5
			claim ann
			claim bob
			take ann
			wait 61m
			take bob > 401 has ended
			take ann
			wait 23h
			take ann > 401 has ended
			left > 4`,
		"a claim of a wrong clock ends": `
			limit 5
			claim ann
			wait -36h
			take ann
			wait 36h
			take ann > 401 open the link again
			take ann > 401 open the link again
			claim ann
			take ann
			left > 3`,
		"a claim is of one link": `
			limit 5
			claim ann
			renew
			take ann > 401 open the link again
			claim bob
			take bob`,
		"another password ends the claims of the one before": `
			password a hash
			open > it needs a claim
			claim ann
			take ann
			wait 61m
			take ann > 401 has ended
			claim ann
			password another hash
			take ann > 401 has ended
			claim ann
			take ann
			limit 3
			take ann
			password
			take ann > 401 has ended
			claim ann
			take ann
			limit 0
			open`,
		"whoever took a download resumes it for a day": `
			limit 2
			claim ann
			take ann
			resume ann
			resume bob > this is another download
			claim bob
			take bob
			resume bob
			resume eve > 401 used up
			wait 23h59m
			resume ann
			wait 1m
			resume ann > 401 used up`,
		"whoever is not known resumes nothing": `
			limit 2
			claim
			take
			resume > this is another download`,
		"nobody resumes what nobody has to take": `
			password a hash
			claim ann
			take ann
			resume ann > this is another download`,
		"nobody resumes a download of a link that has ended": `
			limit 2
			claim ann
			take ann
			end
			resume ann > 401 was ended
			take ann > 401 was ended
			limit 3 > 409 has ended
			end`,
		"nobody resumes a download of a link that has expired": `
			limit 2
			until 1h
			claim ann
			take ann
			wait 2h
			resume ann > 401 has expired
			take ann > 401 has expired
			until 1h
			resume ann`,
		"a file that is restored brings its downloads back": `
			limit 1
			claim ann
			take ann
			delete
			resume ann > 401 used up
			take ann > 401 used up
			restore
			take ann
			resume ann
			open > 401 used up`,
		"a link that waits takes nothing, and loses nothing": `
			limit 1
			claim ann
			claim bob
			mark held
			take ann > 403 being checked
			left > 1
			mark
			take ann
			mark held
			take ann > 403 being checked
			resume ann > 403 being checked
			take bob > 401 used up
			mark
			resume ann
			mark refused
			resume ann > 401 was refused`,
		"a link that waits says why it leads nowhere at the moment": `
			mark held
			wait 1m
			delete
			open > 401 was deleted
			restore
			open > 403 being checked
			until 1h
			wait 1h
			open > 401 has expired`,
		"a renewed link has the limits, and no uses": `
			limit 1
			claim ann
			take ann
			renew
			open-earlier > 401 used up
			resume ann > this is another download
			left > 1
			renew
			open-earlier > 401 was ended`,
		"a link keeps the reason of its end": `
			end
			delete
			open > 401 was ended
			restore
			open > 401 was ended
			delete
			wait 721h
			drop
			open > 401 no such link`,
		"a revoked key ends what led to a file": `
			revoke
			open > 401 was ended`,
		"a revoked key does not change why a link had ended": `
			until 1h
			wait 2h
			revoke
			open > 401 has expired`,
		"a link is kept with a file that is now kept for ever": `
			keep 24h
			keep
			wait 2400h
			drop
			open`,
		"a lost link comes back": `
			lose
			open > 401 no such link
			limit 3 > 404 was lost
			delete
			restore
			open`,
		"a lost link of which limits were known comes back as ended": `
			limit 3
			lose
			delete
			restore
			open > 401 was ended
			renew
			open`,
		"a limit that came beside another name is known": `
			meanwhile limit 3
			keep 24h
			lose
			delete
			restore
			open > 401 was ended`,
		"a link ends while its file is deleted": `
			meanwhile end
			delete
			open > 401 was ended
			restore
			open > 401 was ended`,
		"a link ends while its file changes": `
			meanwhile end
			keep 24h
			open > 401 was ended`,
		"a link ends while another is made": `
			meanwhile end
			share
			open > 401 was ended`,
		"a link ends while it is changed": `
			meanwhile end
			limit 5 > 409 has ended
			open > 401 was ended`,
		"a link is protected while its file is deleted": `
			meanwhile password a hash
			delete
			restore
			open > it needs a claim`,
		"a link is protected while it is renewed": `
			meanwhile password a hash
			renew
			open > it needs a claim`,
		"a link is protected while it gets an end": `
			meanwhile password a hash
			until 2h
			open > it needs a claim
			wait 2h
			open > 401 has expired`,
		"a link is protected while it gets a limit": `
			meanwhile password a hash
			limit 3
			left > 3
			limit 0
			open > it needs a claim`,
		"a download is taken while a link is renewed": `
			limit 2
			claim ann
			meanwhile take ann
			renew
			left > 2
			open-earlier > 401 was ended`,
		"a limit is lowered while a download is taken": `
			limit 2
			claim ann
			claim bob
			take ann
			meanwhile limit 1
			take bob > 401 used up`,
	}, func(t *testing.T) func(string) error {
		c := newCaller(t, forever)
		c.Upload("file=a", "content")
		return (&story{caller: c, file: c.Newest("alice"), claims: map[string]string{}}).do
	})
}

// TestManyAtOnceTakeNoMoreThanTheLimit has fifty connections. The last twenty who took a download are
// remembered.
func TestManyAtOnceTakeNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		limit, claims       int
		given, taken, known int
	}{
		"few downloads":        {limit: 3, claims: 50, given: 3, taken: 3, known: 3},
		"many downloads":       {limit: 30, claims: 50, given: 30, taken: 30, known: 20},
		"each claim two times": {limit: 30, claims: 25, given: 50, taken: 25, known: 20},
		"one claim for all":    {limit: 2, claims: 1, given: 50, taken: 1, known: 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			c.Upload(fmt.Sprint("file=a&downloads=", k.limit), "content")
			f := c.Newest("alice")
			l := c.find(c.links, f)
			claims := make([]string, k.claims)
			for i := range claims {
				var err error
				claims[i], err = c.links.NewClaim(l)
				c.must(err)
			}
			var given atomic.Int64
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					_, err := c.links.Take(t.Context(), l, claims[i%k.claims], fmt.Sprint("taker ", i%k.claims))
					if err == nil {
						given.Add(1)
					} else if !fault.Is(err, fault.Unauthorized) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			now, _ := c.links.Find(t.Context(), f.Area, c.links.Token(f), "") // it may be used up
			expect.Equal(t, "connections that may download", given.Load(), int64(k.given))
			expect.Equal(t, "downloads that were taken", now.Taken, int64(k.taken))
			expect.Equal(t, "takers that are known", len(now.Takers), k.known)
		})
	}
}

func TestALinkGivesItsBytesOrTenTimesItsFileInAnHour(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct{ bound, length, sent, answers int64 }{
		"a small file":             {bound: 1000, length: 1, sent: 10, answers: 100},
		"a large file":             {bound: 1, length: 20, sent: 10, answers: 20},
		"answers that are cut off": {bound: 1000, length: 1, sent: 5, answers: 200},
		"answers without a byte":   {bound: 1000, length: 1, answers: 500},
		"no bound":                 {length: 1, sent: 10, answers: 500},
	} {
		now := time.Now().Truncate(time.Hour)
		s := links.New(links.Config{
			Table:     checked{},
			Now:       func() time.Time { return now },
			Bytes:     k.bound,
			CountWait: time.Hour,
		})
		l := links.Link{Token: "a", File: files.File{Length: k.length}}
		for range 2 {
			n := int64(0)
			for n < 500 && s.MayGive(l, 10) == nil {
				check(t, s.Used(t.Context(), l, links.Used{Begun: 10, Bytes: k.sent}))
				n++
			}
			expect.Equal(t, what+": answers in an hour", n, k.answers)
			now = now.Add(time.Hour)
		}
	}
}
