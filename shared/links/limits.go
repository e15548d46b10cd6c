package links

import (
	"io"
	"time"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
	"ferry/shared/wire"
)

// deadMemory is how long a link that has ended says why.
const deadMemory = 30 * 24 * time.Hour

// MaxLive is the most live links of a file. All links of a file are in one transaction when it
// moves.
const MaxLive = 40

// Limits are the limits of a link. The zero Limits allow everything.
type Limits struct {
	files.Options
	Until  int64   `json:"until,omitempty"`  // Unix seconds; 0 means as long as the file
	Taken  int64   `json:"taken,omitempty"`  // how many downloads of Limit were taken
	Takers []Taker `json:"takers,omitempty"` // who took the last ones
	Secret []byte  `json:"secret,omitempty"` // signs claims
	Ended  int64   `json:"ended,omitempty"`  // Unix seconds when its owner ended it; 0 if not
}

// newLimits returns the limits of a new link.
func (s *Service) newLimits(o files.Options, until int64) (l Limits, err error) {
	l = Limits{Options: o, Until: until}
	if l.Guarded() {
		l.Secret, err = s.newSecret()
	}
	return l, err
}

func (s *Service) newSecret() ([]byte, error) {
	b := make([]byte, secretSize)
	_, err := io.ReadFull(s.Random, b)
	return b, fault.Wrap(err, "making the secret of a link")
}

// Change says what the owner of a file wants to change about a link. A nil field is left
// unchanged.
type Change struct {
	Limit    *int64  // 0 removes it
	Password *string // its hash; empty removes it
	Until    *int64  // Unix seconds; 0 means as long as the file
	End      bool    // for good; then nothing else changes
}

// edit changes a link, and returns the operation that changes its item in the same way.
func (s *Service) edit(l *Link, c Change) (table.Op, error) {
	op, guarded := table.Update(key(l.Token)), l.Guarded()
	if c.End {
		l.Ended = s.Now().Unix()
		return op.Set("ended", l.Ended), nil
	}
	if c.Limit != nil {
		l.Limit, op = *c.Limit, op.Set("limit", *c.Limit)
	}
	if c.Until != nil {
		l.Until, op = *c.Until, op.Set("until", *c.Until)
	}
	if c.Password != nil {
		l.Password, op = *c.Password, op.Set("password", *c.Password)
	}
	if l.Guarded() && (!guarded || c.Password != nil) { // claims made with the old password end
		var err error
		if l.Secret, err = s.newSecret(); err != nil {
			return op, err
		}
		op = op.Set("secret", l.Secret)
	}
	return op, nil
}

// HasTaken reports whether the request for which the link was found has taken a download of it.
func (l Link) HasTaken() bool { return l.taken }

// Guarded reports whether the link gives its bytes only for a claim.
func (l Limits) Guarded() bool { return l.Limit > 0 || l.Password != "" }

// Left returns how many downloads are left; limited is false if there is no limit.
func (l Limits) Left() (n int64, limited bool) { return max(0, l.Limit-l.Taken), l.Limit > 0 }

// Ends returns when the link expires, in Unix seconds; 0 is never.
func (l Link) Ends() int64 {
	if l.Until != 0 && (l.File.Expires == 0 || l.Until < l.File.Expires) {
		return l.Until
	}
	return l.File.Expires
}

// State is whether a link leads to its file, or why it does not.
type State string

// The states of a link.
const (
	Live    State = "live"
	Expired State = "expired"
	UsedUp  State = "used up"
	Ended   State = "ended"
	Deleted State = "deleted"
	// Restored is the state of a backup's link after its file was restored.
	Restored State = "restored"
	Held     State = State(files.Held)
	Refused  State = State(files.Refused)
	unknown  State = "unknown" // such as a mistyped one
)

// State returns the state of a link at a time. A claim that has taken its download may still use
// a link that is used up.
func (l Link) State(now time.Time) State {
	left, limited := l.Left()
	switch {
	case l.Dead != "":
		return l.Dead
	case l.File.Area == "":
		return unknown
	case l.Ended != 0:
		return Ended
	case l.Ends() != 0 && now.Unix() >= l.Ends():
		return Expired
	case limited && left == 0 && !l.taken:
		return UsedUp
	case !l.File.Status.Gives():
		return State(l.File.Status)
	}
	return Live
}

// Gives reports whether a link in this state leads to its file.
func (s State) Gives() bool { return s == Live }

// ends says why a link leads nowhere for good, for each state in which that is so.
var ends = map[State]string{
	Expired:  "this link has expired",
	UsedUp:   "this link is used up: it has reached its limit of downloads",
	Ended:    "this link was ended by its owner",
	Deleted:  "the file of this link was deleted",
	Restored: "this link led to a deleted file, which was restored with its earlier links",
	Refused:  "the file of this link was refused",
	unknown:  wire.NoLink,
}

// Over reports whether a link in this state leads nowhere for good.
func (s State) Over() bool {
	_, over := ends[s]
	return over
}

// Waits reports whether a link in this state may lead to its file later: it must not be removed, and
// no notice of it be dropped. So does any state that this version does not know.
func (s State) Waits() bool { return !s.Gives() && !s.Over() }

// Error implements error: a state can be why a link leads nowhere.
func (s State) Error() string { return "the link is " + string(s) }

// Over says why and since when a link leads nowhere, and who gave it out, as far as known.
type Over struct {
	State
	Sender string
	Since  int64 // Unix seconds; 0 is not known
}

// Unwrap returns the state.
func (o Over) Unwrap() error { return o.State }

// over returns what is known about a link that leads nowhere because of its state.
func (l Link) over(s State) Over {
	switch {
	case l.Dead != "":
		return Over{s, l.DeadBy, l.DeadAt}
	case s == Expired:
		return Over{s, l.Sender(), l.Ends()}
	case s == UsedUp:
		return Over{s, l.Sender(), l.Last}
	}
	return Over{s, l.Sender(), l.Limits.Ended}
}

// fault returns the fault that says why a link does not lead to its file, or nil if it does.
func (s State) fault() error {
	f := &fault.Fault{Kind: fault.Unauthorized, Detail: ends[s], Cause: s}
	switch {
	case s.Gives():
		return nil
	case s.Waits():
		f.Kind = fault.Forbidden
	}
	if s == Held {
		f.Detail = "the file of this link is being checked: try again later"
	}
	return f
}
