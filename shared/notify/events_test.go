package notify_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/files"
	"ferry/shared/table"

	"ferry/shared/notify"
)

var moment = time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.FixedZone("CET", 3600))

func recorder(source string) *notify.EventRecorder {
	return &notify.EventRecorder{Source: source, Now: func() time.Time { return moment }}
}

func file() notify.EventFile {
	return notify.EventFile{Owner: "alice", ID: 7, Name: `a "<b>".txt`, Length: 5, Modified: 1, Area: "files", CRC64NVME: "xLtyZIRLp3M="}
}

func deleted(reason files.Reason, once string) notify.Event {
	f := file()
	f.Reason = reason
	return notify.FileEvent(notify.FileDeleted, f, once)
}

// record writes one event and reads what is stored of it.
func recorded(t *testing.T, r *notify.EventRecorder, e notify.Event) notify.RecordedEvent {
	t.Helper()
	db := open(t)
	ops := r.Ops("request-1", e)
	if err := db.Write(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
	var got notify.RecordedEvent
	if err := db.Get(t.Context(), ops[0].Key, &got); err != nil {
		t.Fatal(err)
	}
	if want := moment.Add(7 * 24 * time.Hour); !ops[0].Expires.Equal(want) {
		t.Errorf("it is kept until %v, want %v", ops[0].Expires, want)
	}
	return got
}

func TestARecordedEventIsACloudEvent(t *testing.T) {
	t.Parallel()
	got := recorded(t, recorder("https://files.example.com/v1"), deleted(files.ByUser, "alice/7-x"))
	var body map[string]any
	if err := json.Unmarshal([]byte(got.Body), &body); err != nil {
		t.Fatal(err)
	}
	data, _ := body["data"].(map[string]any)
	delete(body, "data")
	want := map[string]any{
		"specversion": "1.0", "id": got.ID, "source": "https://files.example.com/v1", "type": "file.deleted",
		"subject": "files/alice/7", "time": "2026-11-21T09:00:00.123456789Z", "datacontenttype": "application/json", "requestid": "request-1",
	}
	if len(body) != len(want) {
		t.Errorf("the attributes are %v", body)
	}
	for name, value := range want {
		if body[name] != value {
			t.Errorf("%s is %v, want %v", name, body[name], value)
		}
	}
	if data["name"] != `a "<b>".txt` || data["reason"] != "user" || data["id"] != 7.0 {
		t.Errorf("the data are %v", data)
	}
	if got.Type != notify.FileDeleted || got.Time != moment.UnixMilli() || got.V != 1 {
		t.Errorf("stored is %+v", got)
	}
}

func TestAServiceWithoutAnAddressHasASourceAllTheSame(t *testing.T) {
	t.Parallel()
	if got := recorded(t, recorder(""), notify.NewPassword("alice", notify.Forgotten, 3)); !strings.Contains(got.Body, `"source":"ferry"`) {
		t.Error(got.Body)
	}
}

func TestWhatHappensOnceHasOneIDAndElseAnother(t *testing.T) {
	t.Parallel()
	link := notify.EventLink{Notification: "1"}
	all := []notify.Event{
		notify.FileEvent(notify.FileUploaded, file(), "a"), notify.FileEvent(notify.FileUploaded, file(), "b"),
		notify.FileEvent(notify.FileRestored, file(), "a"), notify.FileEvent(notify.FileDownloaded, file(), "a"),
		deleted(files.ByUser, "a"), deleted(files.ByPurge, "a"), deleted(files.ByPurge, "b"),
		notify.LinkEvent(notify.LinkSent, link), notify.LinkEvent(notify.LinkFailed, link), notify.NewPassword("alice", notify.Forgotten, 1), notify.NewPassword("alice", notify.Forgotten, 2), notify.NewPassword("bob", notify.Forgotten, 1),
	}
	seen := map[table.Key]int{}
	for i, e := range all {
		first, again := recorder("").Ops("", e)[0].Key, recorder("").Ops("", e)[0].Key
		if first != again {
			t.Errorf("event %d has the keys %v and %v", i, first, again)
		}
		if other, ok := seen[first]; ok {
			t.Errorf("the events %d and %d have the same key", other, i)
		}
		seen[first] = i
	}
}

func TestNobodyListensAndNothingIsRecorded(t *testing.T) {
	t.Parallel()
	var off *notify.EventRecorder
	if ops := off.Ops("", notify.NewPassword("alice", notify.Forgotten, 1)); len(ops) != 0 {
		t.Errorf("%d operations", len(ops))
	}
}

func TestEventsAreSpreadOverAllPartitions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 1000 {
		seen[recorder("").Ops("", notify.NewPassword("alice", notify.Forgotten, int64(i)))[0].Key.PK] = true
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, notify.Partitions(notify.EventPrefix)) || len(got) != 8 {
		t.Errorf("the partitions are %v", got)
	}
}

func TestWhetherSomebodyListensIsNoted(t *testing.T) {
	t.Parallel()
	db := open(t)
	if on, err := notify.Listening(t.Context(), db); on || err != nil {
		t.Errorf("at first it is %v, %v", on, err)
	}
	for _, want := range []bool{true, true, false, false, true} {
		if err := notify.NoteListening(t.Context(), db, want); err != nil {
			t.Fatal(err)
		}
		if on, err := notify.Listening(t.Context(), db); on != want || err != nil {
			t.Errorf("noted is %v, %v, want %v", on, err, want)
		}
	}
}
