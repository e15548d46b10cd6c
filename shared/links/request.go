package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/limit"
	"ferry/shared/table"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// Request is a link through which people without an account send files to its owner's area. A
// guest may add files, and nothing else.
type Request struct {
	V           int64  `json:"v"`
	ID          string `json:"id"`
	Owner       string `json:"owner"`
	Incarnation int64  `json:"incarnation,omitempty"`
	Title       string `json:"title,omitempty"`
	Message     string `json:"message,omitempty"`
	Password    string `json:"password,omitempty"` // its hash; empty if it needs none
	MaxBytes    int64  `json:"maxBytes,omitempty"` // all files together; 0 is no limit
	MaxFiles    int64  `json:"maxFiles,omitempty"` // 0 is UsualFiles
	Key         int64  `json:"key,omitempty"`      // version of its link's key
	Created     int64  `json:"created"`            // Unix seconds, like the next two
	Expires     int64  `json:"expires,omitempty"`  // 0 is never
	Ended       int64  `json:"ended,omitempty"`    // 0 if its owner has not ended it
	Files       int64  `json:"files,omitempty"`    // that have arrived
	Bytes       int64  `json:"bytes,omitempty"`    // that have arrived
	Many        bool   `json:"many,omitempty"`     // an upload has begun that brings several files
	Rev         int64  `json:"rev,omitempty"`      // goes up with each change, also of its open sessions

	Notify files.Contact `json:"notify,omitzero"`  // who is told about files that arrive
	Notice string        `json:"notice,omitempty"` // id of the notice that waits for more files
	Due    int64         `json:"due,omitempty"`    // Unix seconds: when it is sent
	From   []string      `json:"from,omitempty"`   // the guests whom it names; "" for one without a name
}

const (
	// MaxRequests is the most requests that a user may have open.
	MaxRequests = 100
	// UsualFiles is how many files a request takes if its owner set no number.
	UsualFiles = 10_000
	// maxGuests is the most open sessions of a request, and maxGuest the most of one source among
	// them.
	maxGuests, maxGuest = 100, 5
	// maxSends is how often a source may send to a request within an hour.
	maxSends = 1000
	// A notice waits for more files for the time batch. If no notice was due for that long, it
	// waits only for firstWait. In the time beforeSending it takes no more files, because the
	// clock of the process that sends it may be ahead.
	batch, firstWait, beforeSending = 10 * time.Minute, time.Minute, 10 * time.Second
	// mostNamed is how many guests a notice names.
	mostNamed = 10
	// sentMemory is how long guests see what they have sent.
	sentMemory = 30 * 24 * time.Hour
)

func requests(owner string) string { return "requests#" + owner }

func requestKey(owner, id string) table.Key { return table.Key{PK: requests(owner), SK: id} }

// RequestToken returns the token of a request's link. It carries the request's place.
func (s *Service) RequestToken(r Request) string {
	return s.Key.Of(r.Key).Request(r.Owner, r.ID)
}

// NewRequest stores a request. If its owner has too many, the fault is Conflict. It makes two
// calls to the table.
func (s *Service) NewRequest(
	ctx context.Context,
	owner users.User,
	r Request,
) (Request, error) {
	all, err := s.Requests(ctx, owner)
	if err != nil {
		return r, err
	}
	if len(all) >= MaxRequests {
		return r, fault.New(
			fault.Conflict, "you have %d requests, the most that a user may have: end some first", MaxRequests,
		)
	}
	if r.ID, err = keys.RandomID(s.Random, keys.RequestID/2); err != nil {
		return r, err
	}
	r.V = table.Format
	r.Owner = owner.Name
	r.Incarnation = owner.Incarnation
	r.Key, r.Created = s.Key.Version(), s.Now().Unix()
	return r, fault.Wrap(s.Table.Write(ctx, r.put().If(table.NotExists())), "storing a request")
}

// put returns the operation that stores a request. It is forgotten some time after its end.
func (r Request) put() table.Op {
	op := table.Put(requestKey(r.Owner, r.ID), r)
	if end := cmp.Or(r.Ended, r.Expires); end != 0 {
		op = op.Expire(time.Unix(end, 0).Add(deadMemory))
	}
	return op
}

// Requests returns the requests of a user that have not ended, newest first. It makes one call to
// the table for each page.
func (s *Service) Requests(ctx context.Context, owner users.User) (all []Request, err error) {
	for item, err := range table.Each(ctx, s.Table, table.Query{PK: requests(owner.Name)}) {
		var r Request
		if err == nil {
			err = item.Decode(&r)
		}
		if err != nil {
			return nil, fmt.Errorf("listing requests: %w", err)
		}
		if r.Incarnation == owner.Incarnation && !r.state(s.Now()).Over() {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Request) int {
		return cmp.Compare(b.Created, a.Created)
	})
	return all, nil
}

func (r Request) state(now time.Time) State {
	switch {
	case r.Ended != 0:
		return Ended
	case r.Expires != 0 && now.Unix() >= r.Expires:
		return Expired
	}
	return Live
}

// EditRequest changes a request of a user. It makes two calls to the table, and two more for each
// time that guests were faster. If they always are, the fault is Unavailable. A request whose
// link's key was revoked gets a new link.
func (s *Service) EditRequest(
	ctx context.Context,
	owner users.User,
	id string,
	change func(*Request),
) (r Request, err error) {
	ctx = context.WithoutCancel(ctx)
	for range s.turns().Loop(ctx) {
		r, err = s.openRequest(ctx, owner, id)
		if err != nil {
			return r, err
		}
		was := r.Rev
		change(&r)
		if s.Key.Revoked(r.Key) {
			r.Key = s.Key.Version()
		}
		r.Rev++
		if err = s.Table.Write(
			ctx,
			r.put().If(table.Exists(), table.AtMost("rev", was)),
		); !errors.Is(err, table.ErrCondition) {
			return r, fault.Wrap(err, "changing a request")
		}
	}
	return r, crowded()
}

// EndRequest ends a request of a user. However many guests send meanwhile, it makes two calls to
// the table.
func (s *Service) EndRequest(ctx context.Context, owner users.User, id string) error {
	r, err := s.openRequest(ctx, owner, id)
	if err != nil {
		return err
	}
	now := s.Now()
	op := table.Update(requestKey(r.Owner, r.ID)).Set("ended", now.Unix()).Add("rev", 1) // outdates all earlier reads
	err = s.Table.Write(ctx, op.Expire(now.Add(deadMemory)).If(table.Exists()))
	if errors.Is(err, table.ErrCondition) {
		return errNoRequest()
	}
	return fault.Wrap(err, "ending a request")
}

func errNoRequest() error {
	return fault.New(fault.NotFound, "there is no open request with that id")
}

// openRequest returns a request of a user, unless it has ended.
func (s *Service) openRequest(
	ctx context.Context,
	owner users.User,
	id string,
) (r Request, err error) {
	err = s.Table.Get(ctx, requestKey(owner.Name, id), &r)
	if errors.Is(err, table.ErrNotFound) ||
		err == nil && (r.Incarnation != owner.Incarnation || r.state(s.Now()).Over()) {
		return r, errNoRequest()
	}
	return r, fault.Wrap(err, "reading a request")
}

// IsRequest reports whether a token may be that of a request's link. The prefix alone does not
// show it: one random token in 2^18 has that too.
func IsRequest(token string) bool {
	_, _, ok := requestPlace(token)
	return ok
}

func requestPlace(token string) (owner, id string, ok bool) {
	owner, id, ok = keys.RequestPlace(token)
	canonical, valid := users.CanonicalName(owner)
	return owner, id, ok && valid && canonical == owner
}

// FindRequest returns the request of a link's token, and the request's owner. If the link leads
// nowhere, the fault is Unauthorized and says why. It makes one call to the table.
func (s *Service) FindRequest(
	ctx context.Context,
	token string,
) (r Request, maker users.User, err error) {
	owner, id, ok := requestPlace(token)
	if !ok {
		return r, maker, unknown.fault()
	}
	items, err := s.Table.GetMany(ctx, requestKey(owner, id), users.Key(owner))
	if err == nil {
		err = errors.Join(items[0].Decode(&r), items[1].Decode(&maker))
	}
	switch {
	case errors.Is(err, table.ErrNotFound):
		return r, maker, unknown.fault()
	case err != nil:
		return r, maker, fmt.Errorf("reading a request: %w", err)
	case !s.Key.Of(r.Key).IsRequest(token, r.Owner, r.ID), r.Incarnation != maker.Incarnation:
		return r, maker, unknown.fault()
	case s.Key.Revoked(r.Key), maker.State != users.Active:
		return r, maker, Ended.fault()
	}
	return r, maker, r.state(s.Now()).fault()
}

// RemoveRequests removes all requests of a user. It makes one call to the table for each, and for
// each page of them.
func (s *Service) RemoveRequests(ctx context.Context, owner string) error {
	for item, err := range table.Each(ctx, s.Table, table.Query{PK: requests(owner)}) {
		if err == nil {
			err = s.Table.Write(ctx, table.Delete(item.Key))
		}
		if err != nil {
			return fmt.Errorf("removing requests: %w", err)
		}
	}
	return nil
}

// Admit implements files.Links.
func (s *Service) Admit(
	ctx context.Context,
	owner string,
	by files.By,
	t files.Taking,
) ([]table.Op, error) {
	items, err := s.Table.GetMany(ctx, requestKey(owner, by.Request), sourceKey(by))
	var r Request
	var source limit.Hour
	if err == nil {
		err = items[0].Decode(&r)
	}
	if errors.Is(err, table.ErrNotFound) { // the request was removed with its owner
		r.Ended, err = 1, nil
	}
	if err == nil {
		err = fault.Wrap(items[1].Decode(&source), "", table.ErrNotFound)
	}
	if err != nil {
		return nil, fault.Wrap(err, "reading a request")
	}
	if state := r.state(s.Now()); !state.Gives() {
		return nil, fault.New(fault.Forbidden, "this request is %s: no more files can be sent",
			state)
	}
	if err := s.bound(ctx, &r, by, t); err != nil {
		return nil, err
	}
	source, wait := source.Next(s.Now(), maxSends)
	if wait > 0 {
		return nil, fault.Wait(wait, "you have sent %d times within an hour", maxSends)
	}
	if t.Anew {
		r.Notice = ""
	}
	more, err := s.arrived(&r, by, t.Files)
	if err != nil {
		return nil, err
	}
	return append(more,
		table.Put(sourceKey(by), source).Expire(s.Now().Add(time.Hour)),
		table.Update(requestKey(owner, r.ID)).
			Add("rev", 1).
			If(table.Exists(), table.AtMost("rev", r.Rev)).
			Set("files", r.Files).
			Set("bytes", r.Bytes).
			Set("notice", r.Notice).
			Set("due", r.Due).
			Set("from", r.From).
			Set("many", r.Many),
	), nil
}

func sourceKey(by files.By) table.Key {
	return table.Key{PK: requestItems(by.Request), SK: "source#" + by.Source}
}

// bound adds what a guest stores to what has arrived, or returns the fault of a limit.
func (s *Service) bound(ctx context.Context, r *Request, by files.By, t files.Taking) error {
	for _, f := range t.Files {
		r.Files += f.Files()
		r.Bytes += f.Length
	}
	r.Many = r.Many || t.Begun != nil && t.Begun.Files > 1
	far := r.MaxFiles == 0 && r.Files <= UsualFiles-maxGuests && !r.Many // whatever the open sessions bring
	if t.Begun == nil && far && r.MaxBytes == 0 {
		return nil
	}
	open, err := s.openOf(ctx, by, t.Of)
	if err != nil {
		return err
	}
	if t.Begun != nil {
		open.add(*t.Begun, by)
	}
	if t.Begun != nil && (open.sessions > maxGuests || open.bySource > maxGuest) {
		return fault.Wait(
			time.Minute,
			"too many uploads through this link are open; complete or end one first",
		)
	}
	return r.room(open.files, open.bytes)
}

// room returns a fault unless this many more files, with this many bytes together, may arrive.
func (r Request) room(files, bytes int64) error {
	most := cmp.Or(r.MaxFiles, UsualFiles)
	switch {
	case r.Files+files > most:
		return fault.New(fault.Forbidden, "this request takes at most %d files", most)
	case r.MaxBytes > 0 && r.Bytes+bytes > r.MaxBytes:
		return fault.New(fault.TooLarge, "this request takes at most %d bytes in total",
			r.MaxBytes)
	}
	return nil
}

// arrived returns the operations that show files to the guest as sent, and tell the request's
// owner. All files that arrive while a notice waits are in that notice.
func (s *Service) arrived(
	r *Request,
	by files.By,
	stored []files.File,
) (ops []table.Op, err error) {
	if len(stored) == 0 {
		return nil, nil
	}
	var sent sentItem
	a := files.Arrival{Request: r.ID, Title: r.Title}
	for _, f := range stored {
		sent.Files = append(sent.Files, wire.SentFile{Name: f.Name, Length: f.Length})
		a.Files += f.Files()
		a.Bytes += f.Length
	}
	key := sentKey(by, fmt.Sprintf("%016d", stored[0].ID))
	ops = append(ops, table.Put(key, sent).Expire(s.Now().Add(sentMemory)))
	if r.Notify.To == "" {
		return ops, nil
	}
	due := time.Unix(r.Due, 0)
	waits := r.Notice != "" && s.Now().Before(due.Add(-beforeSending))
	if !waits {
		r.From = nil
	}
	if len(r.From) < mostNamed && !slices.Contains(r.From, by.Called) {
		r.From = append(r.From, by.Called)
	}
	a.From = r.From
	if waits {
		return append(ops, s.Outbox.ArrivedToo(r.Notice, a)), nil
	}
	wait := firstWait
	if s.Now().Before(due.Add(batch)) {
		wait = batch
	}
	due = s.Now().Add(wait)
	op, err := s.Outbox.Arrived(r.Notify, a, due)
	r.Notice, r.Due = op.Key.SK, due.Unix()
	return append(ops, op), err
}

// sentItem is what a guest has sent in one go.
type sentItem struct {
	Files []wire.SentFile `json:"files"`
}

func requestItems(id string) string { return "request#" + id }

// sentKey returns the key of what a guest has sent; the keys are in the order of the files' ids.
func sentKey(by files.By, id string) table.Key {
	return table.Key{PK: requestItems(by.Request), SK: "sent#" + by.Guest + "#" + id}
}

// SentBy returns the newest files that a guest has sent, newest first. It makes one call to the
// table.
func (s *Service) SentBy(ctx context.Context, by files.By) (all []wire.SentFile, err error) {
	after := sentKey(by, "~") // after all ids
	page, err := s.Table.Query(ctx, table.Query{
		PK:         after.PK,
		After:      after.SK,
		Descending: true,
		Limit:      table.MaxPage,
	})
	for _, item := range page.Items {
		if !strings.HasPrefix(item.Key.SK, sentKey(by, "").SK) {
			break
		}
		var sent sentItem
		if err = item.Decode(&sent); err != nil {
			break
		}
		all = append(all, sent.Files...)
	}
	return all, fault.Wrap(err, "listing what a guest has sent")
}

// opened is what the open sessions of a request will store.
type opened struct{ sessions, files, bytes, bySource int64 }

func (o *opened) add(sess files.Session, by files.By) {
	o.sessions++
	o.files += max(1, sess.Files)
	o.bytes += max(0, sess.Length)
	if sess.By.Source == by.Source {
		o.bySource++
	}
}

// openOf counts the open sessions of a request, except the one with the id but.
func (s *Service) openOf(ctx context.Context, by files.By, but string) (o opened, err error) {
	for item, err := range table.Each(ctx, s.Table, table.Query{PK: files.SessionsOf(by)}) {
		var sess files.Session
		if err == nil {
			err = item.Decode(&sess)
		}
		if err != nil {
			return o, fmt.Errorf("counting the uploads of a request: %w", err)
		}
		if sess.ID != but && !table.Ended(s.Now(), sess.Expires, files.SessionLife) {
			o.add(sess, by)
		}
	}
	return o, nil
}
