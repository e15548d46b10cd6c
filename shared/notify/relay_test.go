package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/notify"
	"ferry/shared/table"
)

var errRefused = errors.New("no")

// relayed keeps what is published.
type relayed struct {
	mu       sync.Mutex
	sent     map[notify.Topic][]notify.TopicMessage
	fail     string          // messages that contain it are refused
	together *sync.WaitGroup // if set, no call returns before all of these have come
}

func (s *relayed) Publish(_ context.Context, to notify.Topic, messages []notify.TopicMessage) []error {
	if s.together != nil {
		s.together.Done()
		s.together.Wait()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil {
		s.sent = map[notify.Topic][]notify.TopicMessage{}
	}
	errs := make([]error, len(messages))
	for i, m := range messages {
		if s.fail != "" && strings.Contains(m.Body, s.fail) {
			errs[i] = errRefused
			continue
		}
		s.sent[to] = append(s.sent[to], m)
	}
	return errs
}

func TestEachKindOfRecordBecomesItsMessage(t *testing.T) {
	t.Parallel()
	key := func(pk, sk string) table.Key { return table.Key{PK: pk, SK: sk} }
	tests := []struct {
		name   string
		record notify.StreamRecord
		topic  notify.Topic
		want   notify.TopicMessage
	}{
		{"a mail becomes a pointer to it, with its channel", notify.StreamRecord{Key: key("outbox#3", "id"), Channel: "mail", Body: "secret"}, notify.NoticesTopic, notify.TopicMessage{`{"pk":"outbox#3","sk":"id"}`, "channel", "mail"}},
		{"so does a text message", notify.StreamRecord{Key: key("outbox#3", "id"), Channel: "sms"}, notify.NoticesTopic, notify.TopicMessage{`{"pk":"outbox#3","sk":"id"}`, "channel", "sms"}},
		{"a code has a channel of its own", notify.StreamRecord{Key: key("outbox#3", "0-id"), Channel: "mail"}, notify.NoticesTopic, notify.TopicMessage{`{"pk":"outbox#3","sk":"0-id"}`, "channel", "code"}},
		{"a notice of an unknown channel goes where it fails", notify.StreamRecord{Key: key("outbox#3", "id"), Channel: "pigeon"}, notify.NoticesTopic, notify.TopicMessage{`{"pk":"outbox#3","sk":"id"}`, "channel", "mail"}},
		{"an event is published as it is", notify.StreamRecord{Key: key("event#3", "id"), Type: "file.uploaded", Body: `{"a":1}`}, notify.EventsTopic, notify.TopicMessage{`{"a":1}`, "type", "file.uploaded"}},
		{"characters that SQS refuses are escaped", notify.StreamRecord{Key: key("event#3", "id"), Type: "file.uploaded", Body: `{"name":"` + "\ufffe\uffff\U0001f600" + `"}`}, notify.EventsTopic, notify.TopicMessage{`{"name":"\ufffe\uffff` + "\U0001f600" + `"}`, "type", "file.uploaded"}},
		{"an event without a body is not published", notify.StreamRecord{Key: key("event#3", "id"), Type: "file.uploaded"}, "", notify.TopicMessage{}},
		{"nor is a failed notice", notify.StreamRecord{Key: key("outbox-failed", "id"), Channel: "mail"}, "", notify.TopicMessage{}},
		{"nor is any other item", notify.StreamRecord{Key: key("user#alice", "user")}, "", notify.TopicMessage{}},
	}
	for _, tt := range tests {
		var s relayed
		must(t, errors.Join(notify.Relay(t.Context(), &s, []notify.StreamRecord{tt.record})...))
		want := map[notify.Topic][]notify.TopicMessage{tt.topic: {tt.want}}
		if tt.topic == "" {
			want = nil
		}
		apitest.Equal(t, tt.name, s.sent, want)
	}
}

func TestRecordsArePublishedInTensAtOnceWithAnErrorForEach(t *testing.T) {
	t.Parallel()
	records := make([]notify.StreamRecord, 100)
	for i := range records {
		id := fmt.Sprintf("n%02d", i)
		records[i] = notify.StreamRecord{Key: table.Key{PK: "outbox#0", SK: id}, Channel: "mail"}
		if i%2 == 1 {
			records[i] = notify.StreamRecord{Key: table.Key{PK: "event#127", SK: id}, Type: "t", Body: id}
		}
	}
	s := relayed{fail: "n2", together: &sync.WaitGroup{}}
	s.together.Add(10)
	errs := notify.Relay(t.Context(), &s, records)
	for i, err := range errs {
		if want := i >= 20 && i < 30; (err != nil) != want {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if len(s.sent[notify.NoticesTopic]) != 45 || len(s.sent[notify.EventsTopic]) != 45 {
		t.Errorf("%d notices and %d events were published", len(s.sent[notify.NoticesTopic]), len(s.sent[notify.EventsTopic]))
	}
}

func TestPointerKeyRefusesAnythingButANotice(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		`{"pk":"outbox#7","sk":"1-a"}`:        true,
		`{"pk":"user#alice","sk":"user"}`:     false,
		`{"pk":"outbox-failed","sk":"1-a"}`:   false,
		`{"pk":"outbox#7"}`:                   false,
		`{"Type":"Notification","Message":1}`: false,
		`hello`:                               false,
	} {
		key, err := notify.PointerKey(body)
		if (err == nil) != ok || ok && key != (table.Key{PK: "outbox#7", SK: "1-a"}) {
			t.Errorf("%s leads to %v, %v", body, key, err)
		}
	}
}
