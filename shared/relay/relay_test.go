package relay_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"ferry/shared/events"
	"ferry/shared/notices"
	"ferry/shared/relay"
	"ferry/shared/table"
)

// topics keep what is published. Those messages fail that contain a word.
type topics struct {
	sent  map[relay.Topic][]relay.Message
	calls int
	fail  string
}

func (s *topics) Publish(_ context.Context, to relay.Topic, messages []relay.Message) []error {
	if s.sent == nil {
		s.sent = map[relay.Topic][]relay.Message{}
	}
	s.calls++
	errs := make([]error, len(messages))
	for i, m := range messages {
		if s.fail != "" && strings.Contains(m.Body, s.fail) {
			errs[i] = errors.New("no")
			continue
		}
		s.sent[to] = append(s.sent[to], m)
	}
	return errs
}

func TestARecordBecomesTheMessageOfItsKind(t *testing.T) {
	t.Parallel()
	key := func(pk, sk string) table.Key { return table.Key{PK: pk, SK: sk} }
	tests := []struct {
		name   string
		record relay.Record
		topic  relay.Topic
		want   relay.Message
	}{
		{"a mail's place is told, and its channel", relay.Record{Key: key("outbox#3", "id"), Channel: "mail", Body: "secret"}, relay.Notices, relay.Message{`{"pk":"outbox#3","sk":"id"}`, "channel", "mail"}},
		{"so is a text message's", relay.Record{Key: key("outbox#3", "id"), Channel: "sms"}, relay.Notices, relay.Message{`{"pk":"outbox#3","sk":"id"}`, "channel", "sms"}},
		{"a notice of an unknown channel goes where it fails", relay.Record{Key: key("outbox#3", "id"), Channel: "pigeon"}, relay.Notices, relay.Message{`{"pk":"outbox#3","sk":"id"}`, "channel", "mail"}},
		{"an event is published as it is", relay.Record{Key: key("event#3", "id"), Type: "file.uploaded", Body: `{"a":1}`}, relay.Events, relay.Message{`{"a":1}`, "type", "file.uploaded"}},
		{"what SQS refuses in a message is written in ASCII", relay.Record{Key: key("event#3", "id"), Type: "file.uploaded", Body: `{"name":"` + "\ufffe\uffff\U0001f600" + `"}`}, relay.Events, relay.Message{`{"name":"\ufffe\uffff` + "\U0001f600" + `"}`, "type", "file.uploaded"}},
		{"an event without a body is none", relay.Record{Key: key("event#3", "id"), Type: "file.uploaded"}, "", relay.Message{}},
		{"a failed notice is no concern", relay.Record{Key: key("outbox-failed", "id"), Channel: "mail"}, "", relay.Message{}},
		{"nor is any other item", relay.Record{Key: key("user#alice", "user")}, "", relay.Message{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var s topics
			if err := errors.Join(relay.Pass(t.Context(), &s, []relay.Record{tt.record})...); err != nil {
				t.Fatal(err)
			}
			want := map[relay.Topic][]relay.Message{tt.topic: {tt.want}}
			if tt.topic == "" {
				want = nil
			}
			if !reflect.DeepEqual(s.sent, want) {
				t.Errorf("published was %v, want %v", s.sent, want)
			}
		})
	}
}

func TestRecordsGoByTensAndEachFailureIsNamed(t *testing.T) {
	t.Parallel()
	records := make([]relay.Record, 100)
	for i := range records {
		records[i] = relay.Record{Key: table.Key{PK: "outbox#0", SK: fmt.Sprintf("n%02d", i)}, Channel: "mail"}
		if i%2 == 1 {
			records[i] = relay.Record{Key: table.Key{PK: "event#0", SK: fmt.Sprintf("n%02d", i)}, Type: "t", Body: fmt.Sprintf("n%02d", i)}
		}
	}
	s := topics{fail: "n2"}
	errs := relay.Pass(t.Context(), &s, records)
	for i, err := range errs {
		if want := i >= 20 && i < 30; (err != nil) != want {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if s.calls != 10 || len(s.sent[relay.Notices]) != 45 || len(s.sent[relay.Events]) != 45 {
		t.Errorf("%d calls published %d notices and %d events", s.calls, len(s.sent[relay.Notices]), len(s.sent[relay.Events]))
	}
}

func TestAMessageLeadsToItsNoticeAndNowhereElse(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		`{"pk":"outbox#7","sk":"1-a"}`:        true,
		`{"pk":"user#alice","sk":"user"}`:     false,
		`{"pk":"outbox-failed","sk":"1-a"}`:   false,
		`{"pk":"outbox#7"}`:                   false,
		`{"Type":"Notification","Message":1}`: false,
		`hello`:                               false,
	} {
		key, err := relay.Key(body)
		if (err == nil) != ok || ok && key != (table.Key{PK: "outbox#7", SK: "1-a"}) {
			t.Errorf("%s leads to %v, %v", body, key, err)
		}
	}
}

// TestTheNamesAreThoseOfTheItems holds this package to the packages whose items
// it passes on, which it does not import.
func TestTheNamesAreThoseOfTheItems(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, channel := range []notices.Channel{notices.Mail, notices.SMS} {
		op := notices.Notice{Channel: channel}.Op(now, "x")
		m := relay.Pointer(op.Key, string(channel))
		if key, err := relay.Key(m.Body); err != nil || key != op.Key || m.Value != string(channel) {
			t.Errorf("%v becomes %v, %v", op.Key, m, err)
		}
	}
	if events.PartitionPrefix != relay.EventPrefix {
		t.Errorf("events are in %s", events.PartitionPrefix)
	}
}
