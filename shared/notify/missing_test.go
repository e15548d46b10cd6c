package notify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/contact"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/notify/texts"
	"ferry/shared/table"
)

// teller returns a sender that tells uploaders what did not arrive. refused is what the servers of some addresses say;
// the inbox takes all other mails.
func (p *machine) teller(tab table.Table, refused map[string]string) *notify.Sender {
	p.Helper()
	s := p.sender(tab, func(ctx context.Context, s *notify.Sender, n notify.Notice) (string, error) {
		if says := refused[n.To]; says != "" {
			return "", fmt.Errorf("%w: %s", mail.ErrPermanent, says)
		}
		return p.inbox.Couriers()[n.Channel](ctx, s, n)
	})
	s.OnEnd = []notify.OnEnd{notify.TellMissing(p.clock.now)}
	return s
}

// unknown is what the server of an address says that does not exist.
func unknown(address string) map[string]string {
	return map[string]string{address: "550 5.1.1 unknown user"}
}

// uploaded puts the notices of an upload.
func (p *machine) uploaded(request string, to ...string) (all []notify.Notice) {
	p.Helper()
	for i, address := range to {
		n := p.linkNotice(int64(i + 1))
		n.To, n.LogID = address, request
		all = append(all, p.put(n))
	}
	return all
}

// mails returns the subjects of what has arrived at the uploader.
func (p *machine) mails() (all []string) {
	p.Helper()
	for _, m := range p.received() {
		if m.To == "demo@example.net" {
			all = append(all, m.Subject+"\n"+m.Text)
		}
	}
	return all
}

func TestTheUploaderGetsOneMailForAllThatDidNotArrive(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	s := p.teller(p.table, map[string]string{
		"a@x.example": "550 5.1.1 unknown user",
		"b@x.example": "552 5.2.2 mailbox full",
	})
	p.uploaded("one", "a@x.example", "b@x.example", "c@x.example")
	p.uploaded("two", "a@x.example")
	p.pass(s)
	expect.Equal(t, "mails at once", len(p.mails()), 0)
	p.clock.advance(10 * time.Minute)
	p.pass(s)
	got := p.mails()
	slices.Sort(got)
	if len(got) != 2 {
		t.Fatalf("the uploader got %q", got)
	}
	both := slices.IndexFunc(got, func(m string) bool { return strings.Contains(m, "b@x.example") })
	for _, want := range []string{
		"Not delivered: report.pdf\n", "File: report.pdf\n", "a@x.example: There is no such address.\n", "b@x.example: The mailbox is full.\n",
		"https://ferry.example.org/files",
	} {
		if both < 0 || !strings.Contains(got[both], want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if strings.Contains(strings.Join(got, ""), "c@x.example") {
		t.Errorf("who got it is in %q", got)
	}
	p.clock.advance(24 * time.Hour)
	p.pass(s)
	expect.Equal(t, "mails in the end", len(p.mails()), 2)
	expect.Equal(t, "notices that wait", p.waiting(), 0)
}

func TestNobodyIsToldOfAMailToThemselvesOrOneThatIsNotWanted(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	s := p.teller(p.table, map[string]string{"Demo@example.net": "550 5.1.1 unknown", "a@x.example": "550 no"})
	all := p.uploaded("one", "Demo@example.net", "b@x.example")
	must(t, notify.Cancel(t.Context(), p.table, p.clock.now(), all[1].ID, notify.TellMissing(p.clock.now)))
	nobody := p.linkNotice(9)
	nobody.To, nobody.ReplyTo = "a@x.example", ""
	p.put(nobody)
	late := p.linkNotice(10)
	late.Expires = p.clock.now().Unix()
	p.put(late)
	p.pass(s)
	expect.Equal(t, "notices that wait", p.waiting(), 0)
}

func TestAMailAboutWhatDidNotArriveKeepsToTheUploadersLimits(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	s := p.teller(p.table, unknown("a@x.example"))
	s.Limits.PerHour = 1
	for _, request := range []string{"one", "two"} {
		p.uploaded(request, "a@x.example")
	}
	p.pass(s)
	p.clock.advance(10 * time.Minute)
	for range 5 {
		p.pass(s)
		p.clock.advance(time.Minute)
	}
	expect.Equal(t, "mails in the first hour", len(p.mails()), 1)
	p.clock.advance(time.Hour)
	p.pass(s)
	expect.Equal(t, "mails in the second", len(p.mails()), 2)
}

func TestABounceIsToldAndNoCrashOrRepeatDoublesOrLosesIt(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	weak := &double{Table: p.table}
	s := p.teller(weak, unknown("a@x.example"))
	all := p.uploaded("one", "a@x.example", "b@x.example")
	weak.write = func(ops []table.Op) error { // a crash before each end is stored
		if ops[0].Kind == table.KindDelete {
			return table.ErrBusy
		}
		return nil
	}
	for _, n := range all {
		if _, err := s.Handle(t.Context(), n.Key()); !errors.Is(err, table.ErrBusy) {
			t.Fatal(err)
		}
	}
	expect.Equal(t, "notices that wait", p.waiting(), 2)
	weak.write = nil
	p.clock.advance(notify.Lease)
	p.pass(s)
	bounce := notify.Feedback{ID: all[1].ID, Kind: notify.Bounced, Detail: "smtp; 550 5.1.1 user unknown"}
	for range 2 {
		must(t, notify.Record(t.Context(), p.table, p.clock.now(), bounce, notify.TellMissing(p.clock.now)))
	}
	p.clock.advance(10 * time.Minute)
	p.pass(s)
	got := p.mails()
	if len(got) != 1 ||
		!strings.Contains(got[0], "a@x.example: There is") ||
		!strings.Contains(got[0], "b@x.example: There is") {
		t.Errorf("the uploader got %q", got)
	}
}

func TestWhatFailsWhileTheMailIsSentIsToldToo(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	all := p.uploaded("one", "a@x.example", "b@x.example")
	s := p.teller(p.table, unknown("a@x.example"))
	p.pass(s)
	p.clock.advance(10 * time.Minute)
	beside := &double{Table: p.table}
	beside.write = func(ops []table.Op) error {
		if ops[0].Kind == table.KindDelete { // the mail was sent, and this is about to be stored
			beside.write = nil
			return notify.Record(t.Context(), p.table, p.clock.now(), notify.Feedback{
				ID:   all[1].ID,
				Kind: notify.Bounced,
			}, notify.TellMissing(p.clock.now))
		}
		return nil
	}
	p.pass(p.teller(beside, nil))
	p.clock.advance(10 * time.Minute)
	p.pass(s)
	got := p.mails()
	if len(got) != 2 || !strings.Contains(got[0]+got[1], "b@x.example: There is") {
		t.Errorf("the uploader got %q", got)
	}
}

func TestTheMailAboutWhatDidNotArriveInEachLanguage(t *testing.T) {
	t.Parallel()
	for _, lang := range texts.Tags() {
		p := newMachine(t)
		s := p.teller(p.table, unknown("a@x.example"))
		for id, owner := range []string{"demo", "bob"} { // who sends into another user's area has no page of that file
			n := p.linkNotice(int64(id + 1))
			n.Lang, n.To, n.Owner, n.LogID = lang, "a@x.example", owner, owner
			p.put(n)
		}
		p.pass(s)
		p.clock.advance(10 * time.Minute)
		p.pass(s)
		got := p.mails()
		slices.SortFunc(got, func(a, b string) int { return len(b) - len(a) })
		if lang == "en" {
			expect.Golden(t, "missing-mail-en.txt", "Subject: "+strings.Join(got, "\nSubject: "))
		} else if !strings.Contains(got[0], notify.TextsOf(lang).MissingIntro) {
			t.Errorf("in %s: %s", lang, got[0])
		}
	}
}

func TestWhyAMessageDidNotArriveIsSaidInWords(t *testing.T) {
	t.Parallel()
	const gone, full, refused = "There is no such address.", "The mailbox is full.", "The message was refused."
	const day, number = "It could not be delivered for a whole day.", "This number cannot get the message."
	const unsent, letters = "No such messages are sent from here.", "Mail from here takes only plain letters before the @, such as a to z."
	turns(t, notify.TextsOf("en").WhyMissing, map[string]string{
		// an unknown user
		"the notice cannot be delivered: mail: refused for good: RCPT: 550 5.1.1 <x>: Recipient address rejected": gone,
		"550 No such user here": gone, // one in words
		"550 a@***":             gone, // a reply code alone
		// an address that bounced before
		"the notice cannot be delivered: the address takes no mail from here: it bounced": gone,
		"552 5.2.2 over quota":                  full,    // a full mailbox
		"not delivered: Transient, MailboxFull": full,    // one by SES
		"554 5.7.1 message blocked as spam":     refused, // a policy
		"550 5.7.1 Access denied":               refused, // a policy with the code of an address
		// an opt-out
		"the address takes no mail from here: its owner wants none": "This address wants no e-mails from here.",
		"complained: abuse":                      "The e-mail was reported as spam.",                 // a complaint
		"the notice is obsolete: it has expired": "The link ended before the message could be sent.", // an end
		"cancelled":                              "Sending was cancelled here.",                      // an operator
		"sending mail: mail: refused for now: 450 4.7.1 try again":    day,     // greylisting without end
		"connecting to the mail server: dial tcp: connection refused": day,     // a server that is down
		"the notice cannot be delivered: sms: refused for good":       number,  // a number
		"not delivered: Phone is currently unreachable":               number,  // a phone that is off
		"the notice cannot be delivered: opted out":                   refused, // a number that a provider refuses in no known words
		"the notice cannot be delivered: no mail server configured":   unsent,  // a service that sends no mail
		"the notice cannot be delivered: no SMS provider configured":  unsent,  // one that sends no text messages
		// letters that the mail server does not take
		"sending mail: mail: refused for good: " + contact.ErrLocal.Error(): letters,
		"": refused, // nothing known
	})
}
