package notify

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"ferry/shared/contact"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/table"
)

// missingWait is how long the mail about messages that did not arrive waits for more of them.
const missingWait = 10 * time.Minute

// missed is a message that did not arrive, as stored for the mail that covers a whole upload.
type missed struct {
	V    int64  `json:"v"`
	To   string `json:"to"`
	File int64  `json:"file"`
	Name string `json:"name"`
	Why  string `json:"why"` // as in Notice.LastError
}

func missedOf(mail string) string { return "missing#" + mail }

// TellMissing returns an OnEnd that tells the uploader what did not arrive, unless the message was
// to the uploader, or is no longer wanted. One mail covers a whole upload, and its ID is derived
// from the upload. So there is only one, however often and by however many senders a failure is
// stored. If a sender has already looked up what failed, its lease becomes invalid, and the mail is
// sent again with this failure included.
func TellMissing(now func() time.Time) OnEnd {
	return func(n Notice, s State) []table.Op {
		why := reason(n.LastError)
		if s != Failed ||
			n.ReplyTo == "" ||
			contact.Canonical(n.To) == contact.Canonical(n.ReplyTo) ||
			why == "ended" ||
			why == "cancelled" {
			return nil
		}
		at := now()
		upload := cmp.Or(n.LogID, fmt.Sprint(n.File))
		mail := Notice{ID: "m-" +
			keys.HashToken(n.Sender + " " + n.ReplyTo + " " + upload)[:22]}
		op := table.Update(mail.Key()).Add("tries", 1).Add("waits", 1).
			Set("v", int64(table.Format)).
			Set("id", mail.ID).
			Set("kind", string(Missing)).
			Set("channel", string(files.Mail)).
			Set("to", n.ReplyTo).
			Set("lang", n.Lang).
			Set("base", n.Base).
			Set("request", n.LogID).
			Set("sender", n.Sender).
			Set("owner", n.Owner).
			Set("created", at.Unix()).
			Set("notBefore", at.Add(missingWait).UnixMilli())
		about := missed{V: table.Format, To: n.To, File: n.File, Name: n.Name, Why: n.LastError}
		return []table.Op{op, table.Put(table.Key{
			PK: missedOf(mail.ID),
			SK: n.ID,
		}, about).Expire(at.Add(keepFailed))}
	}
}

// prepareMissing looks up what did not arrive, and counts the mail about it against the uploader's limits.
func (e *noticeEntry) prepareMissing(ctx context.Context, n *Notice) error {
	page, err := e.Table.Query(ctx, table.Query{PK: missedOf(n.ID), Limit: table.MaxPage})
	if err != nil {
		return fmt.Errorf("looking for what did not arrive: %w", err)
	}
	for _, item := range page.Items {
		var m missed
		if err := item.Decode(&m); err != nil {
			return fmt.Errorf("reading what did not arrive: %w", err)
		}
		n.missing = append(n.missing, m)
	}
	if len(n.missing) == 0 {
		return fmt.Errorf("%w: the list of what did not arrive is gone", ErrObsolete)
	}
	before := time.UnixMilli(n.Counted) // if it was not counted, no window has begun by then
	counted := func(at time.Time) table.Op {
		return table.Update(n.Key()).Set("counted", at.UnixMilli()).If(n.sameLease())
	}
	limits := Outbox{Table: e.Table, Now: e.Now, Limits: e.Limits}
	_, err = limits.Reserve(ctx, files.By{User: n.Sender}, []string{n.To}, before, counted)
	return fault.Wrap(err, "counting a mail about what did not arrive")
}

// missingLetter tells the uploader what did not arrive.
func missingLetter(t Texts, n Notice) letter {
	l := letter{
		Texts:  t,
		Intro:  t.MissingIntro,
		Footer: t.MissingFooter,
		Link:   n.page("files"),
		Here:   t.MissingHere,
		Button: t.MissingShow,
	}
	var names []string
	for _, m := range n.missing {
		to := fact{oneLine(contact.Readable(m.To)), t.WhyMissing(m.Why)}
		if !slices.Contains(l.Facts, to) { // already listed for another file
			l.Facts = append(l.Facts, to)
		}
		if name := oneLine(m.Name); !slices.Contains(names, name) {
			names = append(names, name)
			l.Facts = append([]fact{{t.File, display(name)}}, l.Facts...)
		}
	}
	l.Subject = t.subject(t.MissingSubject, fileName(n.missing[0].Name))
	if len(names) == 1 {
		l.Link = n.page(fmt.Sprint("files?id=", n.missing[0].File))
	}
	if n.Owner != n.Sender { // the uploader has no page for another owner's file
		l.Link = ""
	}
	return l
}

// WhyMissing says in words why a message did not arrive. lastError is its notice's LastError.
func (t Texts) WhyMissing(lastError string) string { return t.Why[reason(lastError)] }

// reason returns the key of Texts.Why for the last error of a notice: the first whose pattern
// matches. A server's error contains its reply code, its enhanced code (RFC 3463), and its words.
func reason(lastError string) string {
	for _, k := range [][2]string{
		{"stopped", `its owner wants none`},
		{"spam", `called a mail spam|^complained`},
		{"ended", "^" + ErrObsolete.Error()},
		{"cancelled", "^" + Cancelled + "$"},
		{"number", ErrTextRefused.Error() + `|(?i)phone|carrier|handset`},
		{"unsent", `no (?:mail server|SMS provider) configured|no provider is configured`},
		{"letters", contact.ErrLocal.Error()},
		{"full", `\b[45]\.2\.2\b|(?i)mailbox.{0,9}full|over ?quota|quota exceeded`},
		{"address", `\b5\.1\.(?:0|1|2|3|6|10)\b|(?i)no such|unknown|not exist|invalid (?:recipient|mailbox)|NoEmail`},
		{"refused", `\b5\.\d\.\d|(?i)spam|block|denied|policy|reject`},
		{"address", `\b55[013]\b|bounced`},
		{"late", `refused for now|connecting to the mail server|\b4\d\d\b|(?i)time ?out|deadline|waiting for the provider`},
	} {
		if regexp.MustCompile(k[1]).MatchString(lastError) {
			return k[0]
		}
	}
	return "refused"
}
