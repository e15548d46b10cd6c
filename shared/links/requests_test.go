package links_test

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/limit"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// asked is a request of alice's, and what guests do with its link.
type asked struct {
	caller
	begun    time.Time
	made     links.Request
	sessions map[string]files.Session // the last one of each guest
}

func ask(t *testing.T) *asked {
	t.Helper()
	c := newCaller(t)
	made, err := c.links.NewRequest(t.Context(), c.user(), links.Request{Title: "Photos"})
	c.must(err)
	return &asked{caller: c, begun: c.Clock.Now(), made: made, sessions: map[string]files.Session{}}
}

// guest returns what a guest stores files by. Names that begin alike are of one address; - is nobody's.
func (a *asked) guest(name string) files.By {
	return files.By{Request: a.made.ID, Guest: name, Called: strings.Trim(name, "-"), Source: name[:1]}
}

// do is a step of a guest, such as: begin GUEST BYTES FILES.
func (a *asked) do(step string) error {
	var verb, who string
	var n int
	var inBundle int64
	_, _ = fmt.Sscan(step, &verb, &who, &n, &inBundle)
	ctx, all, content := a.Context(), a.Service.Files(), strings.Repeat("x", n)
	switch verb {
	case "send":
		u, err := all.Begin(ctx, "alice", a.guest(who), int64(n), files.Sending{})
		if err == nil {
			err = u.Add(ctx, files.Part{Name: "a", Body: strings.NewReader(content), Size: int64(n)})
		}
		if err == nil {
			_, err = u.Commit(ctx, 0)
		}
		return err
	case "begin":
		plan := files.Plan{Owner: "alice", Name: "a", Length: int64(n), Bundle: inBundle > 0, Files: inBundle}
		sess, err := all.BeginSession(ctx, a.guest(who), plan, nil)
		a.sessions[who] = sess
		return err
	case "complete":
		sess, err := all.Receiving(ctx, a.sessions[who].ID)
		if err == nil {
			_, err = all.WritePart(ctx, sess, 1, strings.NewReader(strings.Repeat("x", int(sess.Length))), nil)
		}
		if err == nil {
			_, err = all.Complete(ctx, sess, nil)
		}
		return err
	case "abort":
		return all.EndSession(ctx, a.sessions[who])
	case "sent":
		sent, err := a.links.SentBy(ctx, a.guest(who))
		return cmp.Or(err, fmt.Errorf("%v", sent))
	case "open":
		_, _, err := a.links.FindRequest(ctx, a.links.RequestToken(a.made))
		return err
	}
	_, what, _ := strings.Cut(step, " ")
	return a.change(verb, what)
}

// change is a step of the request's owner, or of time, or sets what would take long to reach.
func (a *asked) change(verb, what string) error {
	ctx, owner, now := a.Context(), a.user(), a.Clock.Now()
	span, _ := time.ParseDuration(what)
	var n int64
	_, _ = fmt.Sscan(what, &n)
	edit := func(change func(*links.Request)) error {
		return failure(a.links.EditRequest(ctx, owner, a.made.ID, change))
	}
	switch verb {
	case "files":
		return edit(func(r *links.Request) { r.MaxFiles = n })
	case "bytes":
		return edit(func(r *links.Request) { r.MaxBytes = n })
	case "expires":
		return edit(func(r *links.Request) { r.Expires = now.Add(span).Unix() })
	case "notify":
		return edit(func(r *links.Request) { r.Notify = files.Contact{To: "alice@example.com"} })
	case "end":
		return a.links.EndRequest(ctx, owner, a.made.ID)
	case "arrived":
		open, err := a.links.Requests(ctx, owner)
		a.must(err)
		return fmt.Errorf("%d files, %d bytes", open[0].Files, open[0].Bytes)
	case "had":
		return a.Data.Table.Write(ctx, table.Update(table.Key{PK: "requests#alice", SK: a.made.ID}).Set("files", n))
	case "busy":
		key := table.Key{PK: "request#" + a.made.ID, SK: "source#a"}
		return a.Data.Table.Write(ctx, table.Put(key, limit.Hour{Hour: now.Unix() / 3600, Count: n}))
	case "crowd":
		for i := range n {
			by := files.By{Request: a.made.ID, Guest: fmt.Sprint(i), Source: fmt.Sprint(i / 5)}
			a.must(failure(a.Service.Files().BeginSession(ctx, by, files.Plan{
				Owner:  "alice",
				Name:   "a",
				Length: 1,
			}, nil)))
		}
	case "disable":
		return a.Users.Disable(ctx, "alice")
	case "replace":
		a.must(errors.Join(a.Users.Disable(ctx, "alice"), a.Users.Remove(ctx, "alice")))
		a.AddUser("alice", "another password")
	case "revoke":
		a.rotate(1)
	case "renew":
		a.must(failure(a.links.Renew(ctx, 1)))
		open, err := a.links.Requests(ctx, owner)
		a.must(err)
		a.made = open[0]
	case "wait":
		a.Clock.Advance(span)
	case "meanwhile":
		a.Calls.Once("table.Write", func() { a.must(a.do(what)) })
	case "withdraw":
		return notify.Cancel(ctx, a.Data.Table, now, a.Outbox()[0].ID)
	case "notice":
		if all := a.notices(); int(n) < len(all) {
			return errors.New(all[n])
		}
	default:
		a.Fatalf("there is no step %s", verb)
	}
	return nil
}

// notices says when each notice is due, how much it tells of, and from whom.
func (a *asked) notices() (all []string) {
	waiting := a.Outbox()
	slices.SortFunc(waiting, func(x, y notify.Notice) int { return cmp.Compare(x.NotBefore, y.NotBefore) })
	for _, n := range waiting {
		due := time.UnixMilli(n.NotBefore).Sub(a.begun).Round(time.Second)
		all = append(all, fmt.Sprintf("%s: %d files, %d bytes %q", due, n.Files, n.Length, n.From))
	}
	return all
}

func TestARequestTakesWhatItsOwnerAllows(t *testing.T) {
	t.Parallel()
	apitest.Stories(t, map[string]string{
		"so many files": `
			files 3
			send ann 1
			send ann 1
			send bob 1
			send bob 1 > 403 at most 3 files
			files 4
			send bob 1
			arrived > 4 files, 4 bytes`,
		"so many bytes": `
			bytes 100
			send ann 85
			send ann 16 > 413 at most 100 bytes
			send ann 15
			send ann 1 > 413 at most 100 bytes
			send ann 0
			arrived > 3 files, 100 bytes`,
		"a session has its room when it begins": `
			bytes 10
			files 2
			begin ann 8
			send bob 3 > 413 at most 10 bytes
			begin bob 3 > 413 at most 10 bytes
			send bob 2
			send bob 0 > 403 at most 2 files
			abort ann
			send bob 8
			send bob 1 > 403 at most 2 files`,
		"a session counts once": `
			files 2
			begin ann 5
			complete ann
			arrived > 1 files, 5 bytes
			send ann 1
			begin ann 1 > 403 at most 2 files`,
		"ten thousand files": `
			had 9998
			begin ann 1
			send bob 1
			send bob 1 > 403 at most 10000 files
			complete ann
			send bob 1 > 403 at most 10000 files`,
		"more than ten thousand files, if its owner says so": `
			files 20000
			had 10000
			send ann 1`,
		"as many files as a bundle has": `
			files 10
			begin ann 9 3
			begin bob 9 8 > 403 at most 10 files
			begin bob 9 7
			send eve 1 > 403 at most 10 files
			abort bob
			send eve 1`,
		"a bundle of all that it takes": `
			begin ann 9 10000
			send bob 1 > 403 at most 10000 files`,
		"few sessions of one address": `
			begin ann 1
			begin ann 1
			begin ann 1
			begin ann 1
			begin axel 1
			begin axel 1 > 429 too many uploads
			begin bob 1
			abort ann
			begin axel 1`,
		"a hundred sessions": `
			crowd 99
			begin ann 1
			begin bob 1 > 429 too many uploads
			wait 168h
			begin bob 1`,
		"a thousand times an hour from one address": `
			busy 999
			send ann 1
			send ann 1 > 429 1000 times within an hour
			begin ann 1 > 429 1000 times within an hour
			send bob 1
			wait 1h
			send ann 1`,
		"nothing after its end": `
			begin ann 1
			send ann 1
			open
			end
			open > 401 was ended
			send ann 1 > 403 is ended
			begin ann 1 > 403 is ended
			end > 404 no open request
			files 3 > 404 no open request`,
		"nothing of a session after its end": `
			begin ann 1
			end
			complete ann > 403 is ended`,
		"nothing after it expired": `
			expires 1h
			begin ann 1
			wait 1h
			open > 401 has expired
			send ann 1 > 403 is expired
			complete ann > 403 is expired
			files 3 > 404 no open request`,
		"nothing for an owner who is disabled": `
			begin ann 1
			disable
			open > 401 was ended
			send ann 1 > 401 disabled or removed
			complete ann > 403 disabled or removed`,
		"nothing for another owner of the name": `
			begin ann 1
			replace
			open > 401 no such link
			send ann 1 > 401 disabled or removed
			complete ann > 403 disabled or removed`,
		"nothing by a revoked link": `
			revoke
			open > 401 was ended
			renew
			open
			send ann 1`,
		"the last file once, of two who send it": `
			files 1
			meanwhile send bob 1
			send ann 1 > 403 at most 1 files
			arrived > 1 files, 1 bytes`,
		"what two send at once": `
			meanwhile send bob 2
			send ann 1
			arrived > 2 files, 3 bytes`,
		"nothing of what comes when it ends": `
			meanwhile end
			send ann 1 > 403 is ended`,
		"no more than its owner allows meanwhile": `
			send ann 1
			meanwhile files 1
			send ann 1 > 403 at most 1 files`,
		"what comes while its owner changes it": `
			meanwhile send bob 2
			files 1
			arrived > 1 files, 2 bytes
			send ann 1 > 403 at most 1 files`,
	}, func(t *testing.T) func(string) error { return ask(t).do })
}

func TestWhoSentWhatIsTold(t *testing.T) {
	t.Parallel()
	apitest.Stories(t, map[string]string{
		"to each guest what they have sent": `
			send ann 1
			send bob 2
			send anna 3
			send ann 4
			sent ann > [{a 4} {a 1}]
			sent bob > [{a 2}]
			sent eve > []`,
		// The first notice goes out in a minute, and takes one more; the second in ten, and takes the next two, but not
		// what comes just before its end.
		"to the owner in batches": `
			notify
			send ann 1
			wait 30s
			send bob 2
			wait 1m
			send carl 3
			wait 7m
			send - 4
			wait 90s
			send carl 5
			wait 85s
			send eve 6
			wait 30m
			send ann 7
			notice 0 > 1m0s: 2 files, 3 bytes ["ann" "bob"]
			notice 1 > 11m30s: 3 files, 12 bytes ["carl" ""]
			notice 2 > 21m25s: 1 files, 6 bytes ["eve"]
			notice 3 > 42m25s: 1 files, 7 bytes ["ann"]
			notice 4`,
		"to the owner with at most ten names": `
			notify
			send a 1
			send b 1
			send c 1
			send d 1
			send e 1
			send f 1
			send g 1
			send h 1
			send i 1
			send j 1
			send k 1
			notice 0 > 1m0s: 11 files, 11 bytes ["a" "b" "c" "d" "e" "f" "g" "h" "i" "j"]`,
		"to the owner by another notice, if the first is taken away": `
			notify
			send ann 1
			withdraw
			send bob 2
			notice 0 > 10m0s: 1 files, 2 bytes ["bob"]`,
		"to nobody who does not want to know": `
			send ann 1
			notice 0`,
	}, func(t *testing.T) func(string) error { return ask(t).do })
}

func TestManyGuestsAtOnceSendNoMoreThanARequestTakes(t *testing.T) {
	t.Parallel()
	a := ask(t)
	a.must(a.do("files 3"))
	var sent atomic.Int64
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			if err := a.do(fmt.Sprintf("send %c 5", 'a'+i)); err == nil {
				sent.Add(1)
			} else if !fault.Is(err, fault.Forbidden) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	expect.Equal(t, "files that were sent", sent.Load(), 3)
	apitest.Tell(t, "arrived > 3 files, 15 bytes", a.do)
}

func TestAUserHasAHundredOpenRequests(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	add := func(title int) error {
		c.Clock.Advance(time.Second)
		return failure(c.links.NewRequest(t.Context(), c.user(), links.Request{Title: fmt.Sprint(title)}))
	}
	for i := range links.MaxRequests {
		c.must(add(i))
	}
	expect.Fault(t, "one more", add(0), fault.Conflict)
	all, err := c.links.Requests(t.Context(), c.user())
	if err != nil || len(all) != links.MaxRequests || all[0].Title != "99" || all[99].Title != "0" {
		t.Errorf("the requests, newest first, are %+v, %v", all, err)
	}
	c.must(c.links.EndRequest(t.Context(), c.user(), all[0].ID))
	c.must(add(0))
}

func TestATokenOfNoRequestLeadsNowhere(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	zeros := strings.Repeat("0", keys.RequestID)
	for _, place := range []string{
		"",
		"short",
		strings.Repeat("\xff", keys.RequestID) + "alice",
		zeros + "\xff",
		zeros + "ALICE",
		zeros + "alice",
	} {
		token := "in_" + base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("x", keys.TokenSize)+place))
		_, _, err := c.links.FindRequest(t.Context(), token)
		expect.Fault(t, fmt.Sprintf("a token of %q", place), err, fault.Unauthorized)
	}
}
