package notify_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/notify"
	"ferry/shared/table"
)

var errRefused = errors.New("no")

// relayed keeps what is published. Messages that contain the text in fail are refused.
type relayed struct {
	mu    sync.Mutex
	sent  map[notify.Topic][]notify.TopicMessage
	calls int
	fail  string
}

func (s *relayed) Publish(_ context.Context, to notify.Topic, messages []notify.TopicMessage) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil {
		s.sent = map[notify.Topic][]notify.TopicMessage{}
	}
	s.calls++
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
		{"a notice of an unknown channel goes where it fails", notify.StreamRecord{Key: key("outbox#3", "id"), Channel: "pigeon"}, notify.NoticesTopic, notify.TopicMessage{`{"pk":"outbox#3","sk":"id"}`, "channel", "mail"}},
		{"an event is published as it is", notify.StreamRecord{Key: key("event#3", "id"), Type: "file.uploaded", Body: `{"a":1}`}, notify.EventsTopic, notify.TopicMessage{`{"a":1}`, "type", "file.uploaded"}},
		{"characters that SQS refuses are escaped", notify.StreamRecord{Key: key("event#3", "id"), Type: "file.uploaded", Body: `{"name":"` + "\ufffe\uffff\U0001f600" + `"}`}, notify.EventsTopic, notify.TopicMessage{`{"name":"\ufffe\uffff` + "\U0001f600" + `"}`, "type", "file.uploaded"}},
		{"an event without a body is not published", notify.StreamRecord{Key: key("event#3", "id"), Type: "file.uploaded"}, "", notify.TopicMessage{}},
		{"nor is a failed notice", notify.StreamRecord{Key: key("outbox-failed", "id"), Channel: "mail"}, "", notify.TopicMessage{}},
		{"nor is any other item", notify.StreamRecord{Key: key("user#alice", "user")}, "", notify.TopicMessage{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var s relayed
			must(t, errors.Join(notify.Relay(t.Context(), &s, []notify.StreamRecord{tt.record})...))
			want := map[notify.Topic][]notify.TopicMessage{tt.topic: {tt.want}}
			if tt.topic == "" {
				want = nil
			}
			if !reflect.DeepEqual(s.sent, want) {
				t.Errorf("it published %v, want %v", s.sent, want)
			}
		})
	}
}

func TestRecordsArePublishedInTensWithAnErrorForEach(t *testing.T) {
	t.Parallel()
	records := make([]notify.StreamRecord, 100)
	for i := range records {
		records[i] = notify.StreamRecord{Key: table.Key{PK: "outbox#0", SK: fmt.Sprintf("n%02d", i)}, Channel: "mail"}
		if i%2 == 1 {
			records[i] = notify.StreamRecord{Key: table.Key{PK: "event#0", SK: fmt.Sprintf("n%02d", i)}, Type: "t", Body: fmt.Sprintf("n%02d", i)}
		}
	}
	s := relayed{fail: "n2"}
	errs := notify.Relay(t.Context(), &s, records)
	for i, err := range errs {
		if want := i >= 20 && i < 30; (err != nil) != want {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if s.calls != 10 || len(s.sent[notify.NoticesTopic]) != 45 || len(s.sent[notify.EventsTopic]) != 45 {
		t.Errorf("%d calls published %d notices and %d events", s.calls, len(s.sent[notify.NoticesTopic]), len(s.sent[notify.EventsTopic]))
	}
}

// crowd lets no call return until all that it waits for have come.
type crowd struct{ sync.WaitGroup }

func (c *crowd) Publish(_ context.Context, _ notify.Topic, messages []notify.TopicMessage) []error {
	c.Done()
	c.Wait()
	return make([]error, len(messages))
}

func TestAllBatchesOfOneReadArePublishedAtOnce(t *testing.T) {
	t.Parallel()
	records := make([]notify.StreamRecord, 100)
	for i := range records {
		records[i] = notify.StreamRecord{Key: table.Key{PK: "event#127", SK: fmt.Sprint(i)}, Type: "t", Body: "{}"}
		if i >= 50 {
			records[i] = notify.StreamRecord{Key: table.Key{PK: "outbox#0", SK: fmt.Sprint(i)}, Channel: "mail"}
		}
	}
	var c crowd
	c.Add(10)
	must(t, errors.Join(notify.Relay(t.Context(), &c, records)...))
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

func TestPointerLeadsToItsNotice(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, channel := range []notify.Channel{notify.Mail, notify.SMS} {
		op := notify.Notice{Channel: channel}.Op(now, "x")
		m := notify.Pointer(op.Key, string(channel))
		if key, err := notify.PointerKey(m.Body); err != nil || key != op.Key || m.Value != string(channel) {
			t.Errorf("%v becomes %v, %v", op.Key, m, err)
		}
	}
}
