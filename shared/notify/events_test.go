package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/table"
)

var moment = time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.FixedZone("CET", 3600))

func recorder(source string) notify.Outbox {
	return notify.Outbox{
		Source:    source,
		Listening: true,
		Now:       func() time.Time { return moment },
		Random:    strings.NewReader("12345678"),
	}
}

// happened returns the operations that record what happened to a file.
func happened(t *testing.T, o notify.Outbox, what files.What, reason files.Reason, blob string) []table.Op {
	t.Helper()
	f := files.File{
		Owner:    "alice",
		ID:       7,
		Name:     `a "<b>".txt`,
		Length:   5,
		Modified: 1,
		Area:     "files",
		CRC64:    "c4bb7264844ba773",
		Blob:     blob,
	}
	ops, err := o.Event(fault.WithLogID(t.Context(), "request-1"), files.Event{What: what, File: f, Reason: reason})
	must(t, err)
	return ops
}

// newPassword returns the operations that record a user's new password.
func newPassword(t *testing.T, o notify.Outbox, user string, generation int) []table.Op {
	return o.PasswordChanged(t.Context(), user, "forgotten", int64(generation))
}

// recorded writes one event and returns it as stored.
func recorded(t *testing.T, ops []table.Op) notify.RecordedEvent {
	t.Helper()
	db := open(t)
	must(t, db.Write(t.Context(), ops...))
	var got notify.RecordedEvent
	must(t, db.Get(t.Context(), ops[0].Key, &got))
	if want := moment.Add(7 * 24 * time.Hour); !ops[0].Expires.Equal(want) {
		t.Errorf("it is kept until %v, want %v", ops[0].Expires, want)
	}
	return got
}

func TestRecordedEventIsACloudEvent(t *testing.T) {
	t.Parallel()
	got := recorded(t, happened(t, recorder("https://files.example.com/v1"), files.Deleted, files.ByUser, "alice/7-x"))
	var body map[string]any
	must(t, json.Unmarshal([]byte(got.Body), &body))
	data, _ := body["data"].(map[string]any)
	delete(body, "data")
	want := map[string]any{
		"specversion": "1.0", "id": got.ID, "source": "https://files.example.com/v1", "type": "file.deleted",
		"subject": "files/alice/7", "time": "2026-11-21T09:00:00.123456789Z", "datacontenttype": "application/json", "requestid": "request-1",
	}
	expect.Equal(t, "the attributes", body, want)
	if data["name"] != `a "<b>".txt` || data["reason"] != "user" || data["id"] != 7.0 {
		t.Errorf("the data are %v", data)
	}
	if other := recorded(
		t,
		newPassword(t, recorder(""), "alice", 3),
	); !strings.Contains(other.Body, `"source":"ferry"`) {
		t.Errorf("without an address there is no source: %s", other.Body)
	}
	if got.Type != notify.EventType(files.Deleted) || got.Time != moment.UnixMilli() || got.V != 1 {
		t.Errorf("the stored event is %+v", got)
	}
}

func TestEventIDDependsOnWhatHappened(t *testing.T) {
	t.Parallel()
	file := func(what files.What, reason files.Reason, blob string) []table.Op {
		return happened(t, recorder(""), what, reason, blob)
	}
	link := func(s notify.State) []table.Op { return recorder("").LinkEnded(notify.Notice{ID: "1"}, s) }
	password := func(user string, generation int) []table.Op { return newPassword(t, recorder(""), user, generation) }
	all := func() [][]table.Op {
		return [][]table.Op{
			file(
				files.Uploaded,
				"",
				"a",
			), file(files.Uploaded, "", "b"), file(files.Restored, "", "a"), file(files.Downloaded, "", "a"),
			file(
				files.Deleted,
				files.ByUser,
				"a",
			), file(files.Deleted, files.ByPurge, "a"), file(files.Deleted, files.ByPurge, "b"),
			link(notify.Sent), link(notify.Failed), password("alice", 1), password("alice", 2), password("bob", 1),
		}
	}
	expect.Equal(t, "the same events", all(), all())
	seen := map[table.Key]int{}
	for i, ops := range all() {
		if other, ok := seen[ops[0].Key]; ok {
			t.Errorf("the events %d and %d have the same key", other, i)
		}
		seen[ops[0].Key] = i
	}
}

func TestNothingIsRecordedIfNobodyListens(t *testing.T) {
	t.Parallel()
	off := notify.Outbox{}
	if ops := append(newPassword(t, off, "alice", 1), happened(t, off, files.Downloaded, "", "a")...); len(ops) != 0 {
		t.Errorf("%d operations", len(ops))
	}
}

func TestEventsAreSpreadOverAllPartitions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 10_000 {
		seen[newPassword(t, recorder(""), "alice", i)[0].Key.PK] = true
	}
	if len(seen) != 128 || !seen["event#0"] || !seen["event#127"] {
		t.Errorf("the partitions are %v", seen)
	}
}

func TestListeningReturnsWhatWasStored(t *testing.T) {
	t.Parallel()
	db := open(t)
	if on, err := notify.Listening(t.Context(), db); on || err != nil {
		t.Errorf("at first it is %v, %v", on, err)
	}
	for _, want := range []bool{true, true, false, false, true} {
		must(t, notify.NoteListening(t.Context(), db, want))
		if on, err := notify.Listening(t.Context(), db); on != want || err != nil {
			t.Errorf("Listening gives %v, %v, want %v", on, err, want)
		}
	}
}

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
	for name, k := range map[string]struct {
		record notify.StreamRecord
		want   string // by topic: the body, and the attribute with its value
	}{
		"a text message becomes a pointer to it, with its channel": {
			notify.StreamRecord{Key: key("outbox#3", "id"), Channel: "sms", Body: "secret"},
			`map[notices:[{{"pk":"outbox#3","sk":"id"} channel sms}]]`,
		},
		"a code has a channel of its own": {
			notify.StreamRecord{Key: key("outbox#3", "0-id"), Channel: "mail"},
			`map[notices:[{{"pk":"outbox#3","sk":"0-id"} channel code}]]`,
		},
		"a notice of an unknown channel goes where it fails": {
			notify.StreamRecord{Key: key("outbox#3", "id"), Channel: "pigeon"},
			`map[notices:[{{"pk":"outbox#3","sk":"id"} channel mail}]]`,
		},
		"an event is published as it is, but for characters that SQS refuses": {
			notify.StreamRecord{
				Key: key("event#3", "id"), Type: "file.uploaded", Body: `{"name":"` + "\ufffe\uffff\U0001f600" + `"}`,
			},
			`map[events:[{{"name":"\ufffe\uffff` + "\U0001f600" + `"} type file.uploaded}]]`,
		},
		"an event without a body is not published": {
			notify.StreamRecord{Key: key("event#3", "id"), Type: "file.uploaded"}, "map[]",
		},
		"nor is one without a type": {notify.StreamRecord{Key: key("event#3", "id"), Body: "{}"}, "map[]"},
		"nor is a failed notice": {
			notify.StreamRecord{Key: key("outbox-failed", "id"), Channel: "mail"}, "map[]",
		},
	} {
		var s relayed
		must(t, errors.Join(notify.Relay(t.Context(), &s, []notify.StreamRecord{k.record})...))
		expect.Equal(t, name, fmt.Sprint(s.sent), k.want)
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
		t.Errorf("%d notices and %d events were published",
			len(s.sent[notify.NoticesTopic]), len(s.sent[notify.EventsTopic]))
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
