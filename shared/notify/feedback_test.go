package notify_test

import (
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/notify"
)

const tagged = `"mail":{"messageId":"m","destination":["ann@example.com"],"tags":{"notice":["1-a"],"ses:from-domain":["example.org"]}}`

func TestMailFeedbackReadsEventsOfSES(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]notify.Feedback{ // none if it says nothing about a notice
		`{"eventType":"Delivery",` + tagged + `}`: {ID: "1-a", Kind: notify.Delivered}, // a delivery
		// an address that does not exist
		`{"eventType":"Bounce","bounce":{"bounceType":"Permanent","bounceSubType":"General","bouncedRecipients":[{"emailAddress":"ann@example.com","diagnosticCode":"smtp; 550 5.1.1 user unknown"}]},` + tagged + `}`: {
			ID: "1-a", Kind: notify.Bounced, Detail: "smtp; 550 5.1.1 user unknown", To: "ann@example.com",
		},
		// an address that SES itself suppresses
		`{"eventType":"Bounce","bounce":{"bounceType":"Permanent","bounceSubType":"OnAccountSuppressionList","bouncedRecipients":[{"emailAddress":"ann@example.com"}]},` + tagged + `}`: {
			ID: "1-a", Kind: notify.Bounced, Detail: "Permanent, OnAccountSuppressionList", To: "ann@example.com",
		},
		// a mailbox that stayed full
		`{"eventType":"Bounce","bounce":{"bounceType":"Transient","bounceSubType":"MailboxFull"},` + tagged + `}`: {
			ID: "1-a", Kind: notify.Undelivered, Detail: "Transient, MailboxFull",
		},
		// a complaint
		`{"eventType":"Complaint","complaint":{"complaintFeedbackType":"abuse","complainedRecipients":[{"emailAddress":"ann@example.com"}]},` + tagged + `}`: {
			ID: "1-a", Kind: notify.Complained, Detail: "abuse", To: "ann@example.com",
		},
		// a mail that SES found bad
		`{"eventType":"Reject","reject":{"reason":"Bad content"},` + tagged + `}`: {
			ID: "1-a", Kind: notify.Undelivered, Detail: "Bad content",
		},
		`{"eventType":"Open",` + tagged + `}`:                               {}, // an opening, which is ignored
		"Successfully validated SNS topic for Amazon SES event publishing.": {}, // SES's test of the topic
		`{"eventType":"Bounce","mail":{"tags":{}}}`:                         {}, // a mail that is not from Ferry
		`{"eventType":"Delivery","mail":{"tags":{"notice":["a","b"]}}}`:     {}, // a mail with two tags
	} {
		got, ok, err := notify.MailFeedback([]byte(text))
		if err != nil || ok != (want.ID != "") || ok && got != want {
			t.Errorf("%s: got %+v, %v, %v", text, got, ok, err)
		}
	}
	if _, _, err := notify.MailFeedback([]byte("hello")); err == nil {
		t.Error("text that is not an event is accepted")
	}
}

func TestStatusOfATextMessageFindsItsNotice(t *testing.T) {
	t.Parallel()
	db := open(t)
	n := notify.Notice{ID: "1-a", Channel: files.SMS, Provider: "sns-1"}
	must(t, db.Write(t.Context(), notify.Remember(start)(n, notify.Sent)...))
	line := func(id, status string) string {
		return `{"notification":{"messageId":"` +
			id +
			`","timestamp":"2025-10-03 03:00:00.000"},"delivery":{"destination":"+39333XXXX567","providerResponse":"Unreachable"},"status":"` +
			status + `"}`
	}
	for text, want := range map[string]notify.Feedback{ // none if it says nothing about a notice
		line("sns-1", "SUCCESS"): {ID: "1-a", Kind: notify.Delivered},                          // one that arrived
		line("sns-1", "FAILURE"): {ID: "1-a", Kind: notify.Undelivered, Detail: "Unreachable"}, // one that did not
		line("sns-2", "SUCCESS"): {},                                                           // one that is not from Ferry
		"START":                  {},                                                           // a line of something else
		"{}":                     {},                                                           // a line without a name
	} {
		got, ok, err := notify.SMSFeedback(t.Context(), db, []byte(text))
		if err != nil || ok != (want.ID != "") || got != want {
			t.Errorf("%s: got %+v, %v, %v", text, got, ok, err)
		}
	}
}

func TestOnlySentTextMessagesAreRemembered(t *testing.T) {
	t.Parallel()
	remember := notify.Remember(time.Now)
	for _, n := range []notify.Notice{
		{Channel: files.Mail, Provider: "x", Outcome: notify.Sent},
		{Channel: files.SMS, Provider: "x", Outcome: notify.Failed},
		{Channel: files.SMS, Outcome: notify.Sent},
	} {
		if ops := remember(n, n.Outcome); ops != nil {
			t.Errorf("%+v is remembered", n)
		}
	}
}

func TestFeedbackOnAForgottenNoticeOnlySuppressesTheAddress(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	pin := p.put(p.pinNotice())
	p.pass(p.sender(p.table, nil))
	for _, f := range []notify.Feedback{
		{ID: pin.ID, Kind: notify.Delivered},
		{ID: pin.ID, Kind: notify.Bounced, To: "Demo@example.net"},
		{ID: "long-ago", Kind: notify.Complained, To: "eve@example.net"},
		{ID: "long-ago-too", Kind: notify.Bounced},
		{ID: "a-number", Kind: notify.Bounced, To: "+393331234567"},
	} {
		must(t, notify.Record(t.Context(), p.table, start(), f))
	}
	for address, want := range map[string]notify.SuppressReason{
		"demo@example.net": notify.AddressBounced, "eve@example.net": notify.AddressComplained, "+393331234567": "",
	} {
		expect.Equal(t, address, p.suppressed(address), want)
	}
	expect.Equal(t, "the notice of the PIN", p.find(pin.ID).ID, "")
}
