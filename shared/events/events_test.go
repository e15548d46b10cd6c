package events_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ferry/shared/events"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

var moment = time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.FixedZone("CET", 3600))

func recorder(source string) *events.Recorder {
	return &events.Recorder{Source: source, Now: func() time.Time { return moment }}
}

func file() events.File {
	return events.File{Owner: "alice", ID: 7, Name: `a "<b>".txt`, Length: 5, Modified: 1, Area: "files", CRC64NVME: "xLtyZIRLp3M="}
}

// record writes one event and reads what is stored of it.
func record(t *testing.T, r *events.Recorder, e events.Event) events.Recorded {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table.sqlite"), sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ops := r.Ops("request-1", e)
	if err := db.Write(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
	var got events.Recorded
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
	got := record(t, recorder("https://files.example.com/v1"), events.Deleted(file(), events.ByUser, "alice/7-x"))
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
	if got.Type != events.FileDeleted || got.Time != moment.UnixMilli() || got.V != 1 {
		t.Errorf("stored is %+v", got)
	}
}

func TestAServiceWithoutAnAddressHasASourceAllTheSame(t *testing.T) {
	t.Parallel()
	if got := record(t, recorder(""), events.NewPassword("alice", events.Forgotten, 3)); !strings.Contains(got.Body, `"source":"ferry"`) {
		t.Error(got.Body)
	}
}

func TestWhatHappensOnceHasOneIDAndElseAnother(t *testing.T) {
	t.Parallel()
	link := events.Link{Notification: "1"}
	all := []events.Event{
		events.Uploaded(file(), "a"), events.Uploaded(file(), "b"), events.Restored(file(), "a"), events.Downloaded(file(), "", "a"),
		events.Deleted(file(), events.ByUser, "a"), events.Deleted(file(), events.Purge, "a"), events.Deleted(file(), events.Purge, "b"),
		events.Sent(link), events.Failed(link), events.NewPassword("alice", events.Forgotten, 1), events.NewPassword("alice", events.Forgotten, 2), events.NewPassword("bob", events.Forgotten, 1),
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
	var off *events.Recorder
	if ops := off.Ops("", events.NewPassword("alice", events.Forgotten, 1)); len(ops) != 0 {
		t.Errorf("%d operations", len(ops))
	}
}

func TestEventsAreSpreadOverAllPartitions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 1000 {
		seen[recorder("").Ops("", events.NewPassword("alice", events.Forgotten, int64(i)))[0].Key.PK] = true
	}
	for shard := range events.Shards {
		if !seen[events.Partition(shard)] {
			t.Errorf("nothing in %s", events.Partition(shard))
		}
	}
	if len(seen) != events.Shards {
		t.Errorf("the partitions are %v", seen)
	}
}

func TestWhetherSomebodyListensIsNoted(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table.sqlite"), sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if on, err := events.Noted(t.Context(), db); on || err != nil {
		t.Errorf("at first it is %v, %v", on, err)
	}
	for _, want := range []bool{true, true, false, false, true} {
		if err := events.Note(t.Context(), db, want); err != nil {
			t.Fatal(err)
		}
		if on, err := events.Noted(t.Context(), db); on != want || err != nil {
			t.Errorf("noted is %v, %v, want %v", on, err, want)
		}
	}
}
