package feedback_test

import (
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/boottest"
	"ferry/shared/feedback"
	"ferry/shared/notices"
)

const tagged = `"mail":{"messageId":"m","destination":["ann@example.com"],"tags":{"notice":["1-a"],"ses:from-domain":["example.org"]}}`

func TestEventsOfSES(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       notices.Feedback
		ok         bool
	}{
		{"a delivery", `{"eventType":"Delivery",` + tagged + `}`, notices.Feedback{ID: "1-a", Kind: notices.Delivered}, true},
		{"an address that is none", `{"eventType":"Bounce","bounce":{"bounceType":"Permanent","bounceSubType":"General","bouncedRecipients":[{"emailAddress":"ann@example.com","diagnosticCode":"smtp; 550 5.1.1 user unknown"}]},` + tagged + `}`,
			notices.Feedback{ID: "1-a", Kind: notices.Bounced, Detail: "smtp; 550 5.1.1 user unknown", To: "ann@example.com"}, true},
		{"one that SES itself suppresses", `{"eventType":"Bounce","bounce":{"bounceType":"Permanent","bounceSubType":"OnAccountSuppressionList","bouncedRecipients":[{"emailAddress":"ann@example.com"}]},` + tagged + `}`,
			notices.Feedback{ID: "1-a", Kind: notices.Bounced, Detail: "Permanent, OnAccountSuppressionList", To: "ann@example.com"}, true},
		{"a mailbox that stayed full", `{"eventType":"Bounce","bounce":{"bounceType":"Transient","bounceSubType":"MailboxFull"},` + tagged + `}`,
			notices.Feedback{ID: "1-a", Kind: notices.Undelivered, Detail: "Transient, MailboxFull"}, true},
		{"a complaint", `{"eventType":"Complaint","complaint":{"complaintFeedbackType":"abuse","complainedRecipients":[{"emailAddress":"ann@example.com"}]},` + tagged + `}`,
			notices.Feedback{ID: "1-a", Kind: notices.Complained, Detail: "abuse", To: "ann@example.com"}, true},
		{"a mail that SES found bad", `{"eventType":"Reject","reject":{"reason":"Bad content"},` + tagged + `}`, notices.Feedback{ID: "1-a", Kind: notices.Undelivered, Detail: "Bad content"}, true},
		{"an opening, which is nobody's concern", `{"eventType":"Open",` + tagged + `}`, notices.Feedback{}, false},
		{"SES's trial of the topic, when its configuration set is made", "Successfully validated SNS topic for Amazon SES event publishing.", notices.Feedback{}, false},
		{"a mail of others", `{"eventType":"Bounce","mail":{"tags":{}}}`, notices.Feedback{}, false},
		{"a mail with two of the tag", `{"eventType":"Delivery","mail":{"tags":{"notice":["a","b"]}}}`, notices.Feedback{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok, err := feedback.Mail([]byte(tt.text))
			if err != nil || ok != tt.ok || ok && got != tt.want {
				t.Errorf("got %+v, %v, %v", got, ok, err)
			}
		})
	}
	if _, _, err := feedback.Mail([]byte("hello")); err == nil {
		t.Error("what is no event is taken for one")
	}
	long := `{"eventType":"Reject","reject":{"reason":"` + strings.Repeat("x", 9000) + `"},` + tagged + `}`
	if f, _, err := feedback.Mail([]byte(long)); err != nil || len(f.Detail) > 500 {
		t.Errorf("a detail has %d bytes, %v", len(f.Detail), err)
	}
}

func TestTheStatusOfATextMessageFindsItsNotice(t *testing.T) {
	t.Parallel()
	p := boottest.Ports(t, nil)
	remember := feedback.Remember(p.Now)
	n := notices.Notice{ID: "1-a", Channel: notices.SMS, Provider: "sns-1"}
	if err := p.Table.Write(t.Context(), remember(n, notices.Sent)...); err != nil {
		t.Fatal(err)
	}
	line := func(id, status string) string {
		return `{"notification":{"messageId":"` + id + `","timestamp":"2025-10-03 03:00:00.000"},"delivery":{"destination":"+39333XXXX567","providerResponse":"Unreachable"},"status":"` + status + `"}`
	}
	tests := []struct {
		name, text string
		want       notices.Feedback
		ok         bool
	}{
		{"one that arrived", line("sns-1", "SUCCESS"), notices.Feedback{ID: "1-a", Kind: notices.Delivered}, true},
		{"one that did not", line("sns-1", "FAILURE"), notices.Feedback{ID: "1-a", Kind: notices.Undelivered, Detail: "Unreachable"}, true},
		{"one of others", line("sns-2", "SUCCESS"), notices.Feedback{}, false},
		{"a line of something else", "START", notices.Feedback{}, false},
		{"a line without a name", "{}", notices.Feedback{}, false},
	}
	for _, tt := range tests {
		got, ok, err := feedback.Text(t.Context(), p.Table, []byte(tt.text))
		if err != nil || ok != tt.ok || got != tt.want {
			t.Errorf("%s: got %+v, %v, %v", tt.name, got, ok, err)
		}
	}
}

func TestOnlyTextMessagesThatWereSentAreRemembered(t *testing.T) {
	t.Parallel()
	remember := feedback.Remember(time.Now)
	for _, tt := range []struct {
		n notices.Notice
		s notices.State
	}{
		{notices.Notice{Channel: notices.Mail, Provider: "x"}, notices.Sent},
		{notices.Notice{Channel: notices.SMS, Provider: "x"}, notices.Failed},
		{notices.Notice{Channel: notices.SMS}, notices.Sent},
	} {
		if ops := remember(tt.n, tt.s); ops != nil {
			t.Errorf("%+v as %s is remembered", tt.n, tt.s)
		}
	}
}
