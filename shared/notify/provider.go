// Package feedback reads what Amazon's providers tell of messages that they
// have taken: SES by events of a configuration set, SNS by delivery status logs
// of text messages.

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ferry/shared/table"
)

// maxDetail is the most bytes of a provider's explanation that are passed on.
const maxDetail = 500

// mailEvent is an event of SES:
// https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html
type mailEvent struct {
	EventType string `json:"eventType"`
	Mail      struct {
		Tags        map[string][]string `json:"tags"`
		Destination []string            `json:"destination"`
	} `json:"mail"`
	Bounce struct {
		Type       string      `json:"bounceType"`
		SubType    string      `json:"bounceSubType"`
		Recipients []recipient `json:"bouncedRecipients"`
	} `json:"bounce"`
	Complaint struct {
		Type       string      `json:"complaintFeedbackType"`
		Recipients []recipient `json:"complainedRecipients"`
	} `json:"complaint"`
	Reject struct {
		Reason string `json:"reason"`
	} `json:"reject"`
}

type recipient struct {
	Address    string `json:"emailAddress"`
	Diagnostic string `json:"diagnosticCode"`
}

// trial is how the message begins by which SES tries a topic when a
// configuration set is to tell it of events. It is no JSON.
const trial = "Successfully validated SNS topic"

// Mail reads an event of SES. ok is false if it is of no notice, or tells
// nothing that is recorded.
func MailFeedback(text []byte) (f Feedback, ok bool, err error) {
	if bytes.HasPrefix(text, []byte(trial)) {
		return f, false, nil
	}
	var e mailEvent
	if err := json.Unmarshal(text, &e); err != nil {
		return f, false, fmt.Errorf("reading an event of SES: %w", err)
	}
	ids := e.Mail.Tags[Tag]
	if len(ids) != 1 || ids[0] == "" {
		return f, false, nil
	}
	f.ID = ids[0]
	switch e.EventType {
	case "Delivery":
		f.Kind = Delivered
	case "Bounce":
		e.bounced(&f)
	case "Complaint":
		f.Kind, f.Detail = Complained, e.Complaint.Type
		f.To, _ = first(e.Complaint.Recipients)
	case "Reject":
		f.Kind, f.Detail = Undelivered, e.Reject.Reason
	default:
		return f, false, nil
	}
	f.Detail = f.Detail[:min(len(f.Detail), maxDetail)]
	return f, true, nil
}

// bounced tells an address that is none from one that could not be reached for
// days, as with a full mailbox.
func (e mailEvent) bounced(f *Feedback) {
	f.Kind = Undelivered
	if e.Bounce.Type == "Permanent" {
		f.Kind = Bounced
	}
	f.To, f.Detail = first(e.Bounce.Recipients)
	if f.Detail == "" {
		f.Detail = e.Bounce.Type + ", " + e.Bounce.SubType
	}
}

// first is the only one: each mail has one recipient.
func first(all []recipient) (address, diagnostic string) {
	if len(all) == 0 {
		return "", ""
	}
	return all[0].Address, all[0].Diagnostic
}

// textStatus is a delivery status of SNS:
// https://docs.aws.amazon.com/sns/latest/dg/sms_stats_cloudwatch.html
type textStatus struct {
	Notification struct {
		MessageID string `json:"messageId"`
	} `json:"notification"`
	Delivery struct {
		Response string `json:"providerResponse"`
	} `json:"delivery"`
	Status string `json:"status"`
}

// Text reads a line of the delivery status log of text messages, and finds
// which notice it is about. ok is false if it is about none: the log has all
// messages of the account.
func SMSFeedback(ctx context.Context, t table.Table, line []byte) (f Feedback, ok bool, err error) {
	var s textStatus
	if json.Unmarshal(line, &s) != nil || s.Notification.MessageID == "" {
		return f, false, nil
	}
	var of owner
	switch err := t.Get(ctx, providerKey(s.Notification.MessageID), &of); {
	case errors.Is(err, table.ErrNotFound):
		return f, false, nil
	case err != nil:
		return f, false, fmt.Errorf("looking for the notice of a text message: %w", err)
	}
	f = Feedback{ID: of.Notice, Kind: Delivered}
	if s.Status != "SUCCESS" {
		f.Kind, f.Detail = Undelivered, s.Delivery.Response[:min(len(s.Delivery.Response), maxDetail)]
	}
	return f, true, nil
}

// known is how long after it was sent a text message's status is waited for.
const known = 3 * 24 * time.Hour

// owner is stored for each text message that was sent, under the provider's
// name of it, which is all that a delivery status has.
type owner struct {
	V      int64  `json:"v"`
	Notice string `json:"notice"`
}

func providerKey(id string) table.Key {
	return table.Key{PK: "provider#" + strings.ToValidUTF8(id[:min(len(id), 200)], ""), SK: "provider"}
}

// Remember is what is to be written of a notice that is settled, so that Text finds it.
func Remember(now func() time.Time) Settled {
	return func(n Notice, s State) []table.Op {
		if s != Sent || n.Channel != SMS || n.Provider == "" {
			return nil
		}
		return []table.Op{table.Put(providerKey(n.Provider), owner{1, n.ID}).Expire(now().Add(known))}
	}
}
