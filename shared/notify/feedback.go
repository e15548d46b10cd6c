package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notify/mail"
	"ferry/shared/table"
)

// ErrInOutbox is returned for feedback on a notice whose sender has not yet stored
// that it was sent. Record the same feedback again a little later.
var ErrInOutbox = errors.New("the notice is still in the outbox")

// FeedbackKind is what a provider reports about a message that it has accepted.
type FeedbackKind string

// The kinds.
const (
	Delivered   FeedbackKind = "delivered"
	Bounced                  = FeedbackKind(AddressBounced)    // the address will never accept mail
	Complained               = FeedbackKind(AddressComplained) // the recipient reported it as spam, and gets no more
	Undelivered FeedbackKind = "failed"                        // only this message
)

// Feedback is what a provider reports about one notice's message.
type Feedback struct {
	ID     string // the notice's
	Kind   FeedbackKind
	Detail string // what the provider says about a failure
	// To is the address that the provider names, in case the notice is no
	// longer known. It may be empty.
	To string
}

// Record stores feedback, which may come several times and in any order: a failed
// notice stays failed. The address is suppressed even if the notice is no longer
// known. also adds operations for a notice that fails.
func Record(
	ctx context.Context,
	t table.Table,
	now time.Time,
	f Feedback,
	also ...OnEnd,
) error {
	items, err := lookUp(ctx, t, f.ID)
	if err != nil {
		return err
	}
	if items[0].Found() && !items[2].Found() {
		return ErrInOutbox
	}
	n, err := latest(items[1:])
	if err != nil || n.Outcome == Failed {
		return err
	}
	ops := append(f.suppress(n.To, now), f.apply(n, now, also)...)
	return unlessTaken("recording a provider's feedback", t.Write(ctx, ops...))
}

// apply returns the operations on a notice that was sent. Their condition fails if other feedback
// is recorded at the same moment; then the other feedback counts.
func (f Feedback) apply(n Notice, now time.Time, also []OnEnd) []table.Op {
	if n.Outcome != Sent || f.Kind == Delivered && n.Delivered != 0 {
		return nil
	}
	op := table.Update(endedKey(n.ID)).If(table.Equal("state", string(Sent)))
	if f.Kind == Delivered {
		return []table.Op{op.Set("delivered", now.UnixMilli())}
	}
	what := string(f.Kind)
	if f.Kind == Undelivered {
		what = "not delivered"
	}
	n = n.failed(now, strings.TrimSuffix(what+": "+f.detail(), ": "))
	ops := []table.Op{op.Set("state", string(Failed)).
		Set("failedAt", n.FailedAt).
		Set("lastError", n.LastError)}
	return append(ops, n.onEnd(also)...)
}

// suppress returns the operation that stops mail to an address that refuses it.
// to is the notice's address, if it is known.
func (f Feedback) suppress(to string, now time.Time) []table.Op {
	to = cmp.Or(to, f.To)
	if f.Kind != Bounced && f.Kind != Complained || !mail.Valid(to) {
		return nil
	}
	return []table.Op{Suppress(to, SuppressReason(f.Kind), f.detail(), now)}
}

func (f Feedback) detail() string { return brief(errors.New(scrubText(f.Detail))) }

// mailEvent is an event of SES about a mail to one recipient:
// https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html
// A field without a tag matches its name in upper or lower case.
type mailEvent struct {
	EventType string `json:"eventType"`
	Mail      struct{ Tags map[string][]string }
	Bounce    struct {
		Type       string       `json:"bounceType"`
		SubType    string       `json:"bounceSubType"`
		Recipients [1]recipient `json:"bouncedRecipients"`
	} `json:"bounce"`
	Complaint struct {
		Type       string       `json:"complaintFeedbackType"`
		Recipients [1]recipient `json:"complainedRecipients"`
	} `json:"complaint"`
	Reject struct{ Reason string }
}

type recipient struct {
	Address    string `json:"emailAddress"`
	Diagnostic string `json:"diagnosticCode"`
}

// trial begins the message that SES sends to test a topic when a configuration set is connected
// to it. That message is not JSON.
const trial = "Successfully validated SNS topic"

// MailFeedback reads an event of SES. ok is false if it is not about a notice, or
// says nothing worth recording.
func MailFeedback(text []byte) (f Feedback, ok bool, err error) {
	if bytes.HasPrefix(text, []byte(trial)) {
		return f, false, nil
	}
	var e mailEvent
	if err := json.Unmarshal(text, &e); err != nil {
		return f, false, fmt.Errorf("reading an event of SES: %w", err)
	}
	ids := e.Mail.Tags[mail.Tag]
	if len(ids) != 1 || ids[0] == "" {
		return f, false, nil
	}
	f.ID = ids[0]
	switch e.EventType {
	case "Delivery":
		f.Kind = Delivered
	case "Bounce":
		// Either the address does not exist, or mail could not reach it for days, as with a full
		// mailbox.
		f.Kind = Undelivered
		if e.Bounce.Type == "Permanent" {
			f.Kind = Bounced
		}
		to := e.Bounce.Recipients[0]
		f.To, f.Detail = to.Address, cmp.Or(to.Diagnostic, e.Bounce.Type+", "+e.Bounce.SubType)
	case "Complaint":
		f.Kind = Complained
		f.Detail = e.Complaint.Type
		f.To = e.Complaint.Recipients[0].Address
	case "Reject":
		f.Kind, f.Detail = Undelivered, e.Reject.Reason
	default:
		return f, false, nil
	}
	return f, true, nil
}

// textStatus is a delivery status of SNS:
// https://docs.aws.amazon.com/sns/latest/dg/sms_stats_cloudwatch.html
// Its fields match their names in upper or lower case.
type textStatus struct {
	Notification struct{ MessageID string }
	Delivery     struct{ ProviderResponse string }
	Status       string
}

// SMSFeedback reads a line of the delivery status log of text messages, and finds
// its notice. ok is false if there is none: the log contains all messages of the
// account.
func SMSFeedback(
	ctx context.Context,
	t table.Table,
	line []byte,
) (f Feedback, ok bool, err error) {
	var s textStatus
	if json.Unmarshal(line, &s) != nil || s.Notification.MessageID == "" {
		return f, false, nil
	}
	var of textOwner
	if err := t.Get(ctx, providerKey(s.Notification.MessageID), &of); err != nil {
		return f, false, fault.Wrap(
			err,
			"looking for the notice of a text message",
			table.ErrNotFound,
		)
	}
	f = Feedback{ID: of.Notice, Kind: Delivered}
	if s.Status != "SUCCESS" {
		f.Kind, f.Detail = Undelivered, s.Delivery.ProviderResponse
	}
	return f, true, nil
}

// statusWait is how long to wait for a text message's status.
const statusWait = 3 * day

// textOwner is stored for each sent text message, under the provider's ID for it: a delivery
// status has no other reference.
type textOwner struct {
	V      int64  `json:"v"`
	Notice string `json:"notice"`
}

func providerKey(id string) table.Key {
	return table.Key{
		PK: "provider#" + strings.ToValidUTF8(id[:min(len(id), 200)], ""),
		SK: "provider",
	}
}

// Remember returns an OnEnd that stores the provider's ID of each sent text message, so that
// SMSFeedback can find its notice.
func Remember(now func() time.Time) OnEnd {
	return func(n Notice, s State) []table.Op {
		if s != Sent || n.Channel != files.SMS || n.Provider == "" {
			return nil
		}
		return []table.Op{table.Put(providerKey(n.Provider), textOwner{1, n.ID}).
			Expire(now().Add(statusWait))}
	}
}
