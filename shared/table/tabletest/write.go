package tabletest

import (
	"testing"
	"time"

	"ferry/shared/table"
)

func writeTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"put replaces the whole item":                 putReplaces,
		"put takes a pointer to a struct":             putPointer,
		"delete removes the item":                     deleteRemoves,
		"delete of a missing item is no error":        deleteMissing,
		"an item can be put again after its deletion": putAfterDelete,
		"write of no operations does nothing":         writeNothing,
		"expiry hides and changes no attribute":       expireKeeps,
		"an expiry that has passed is no error":       expirePassed,
		"relaxed writes are read like others":         relaxedWrites,
		"relaxed operations mix with others":          relaxedMix,
	}
}

func putReplaces(t *testing.T, s suite) {
	s.put("k", row{Name: "old", Count: 5, Done: true, Note: "gone", Tags: []string{"gone"}})
	s.write(table.Update(s.key("k")).Set("extra", "gone"))
	s.put("k", row{Name: "new"})
	s.wantRow("k", row{Name: "new"})
	s.wantRefused(s.Write(t.Context(), table.Check(s.key("k"), table.Equal("extra", "gone"))), 0)
}

func putPointer(t *testing.T, s suite) {
	s.put("k", &row{Name: "n"})
	s.wantRow("k", row{Name: "n"})
}

func deleteRemoves(t *testing.T, s suite) {
	s.put("a", row{})
	s.put("b", row{Name: "b"})
	s.write(table.Delete(s.key("a")))
	s.wantMissing("a")
	s.wantRow("b", row{Name: "b"})
}

func deleteMissing(t *testing.T, s suite) {
	s.write(table.Delete(s.key("k")))
	s.write(table.Delete(s.key("k")), table.Put(s.key("b"), row{Name: "b"}))
	s.wantMissing("k")
	s.wantRow("b", row{Name: "b"})
}

func putAfterDelete(t *testing.T, s suite) {
	s.put("k", row{Name: "one", Count: 9})
	s.write(table.Delete(s.key("k")))
	s.write(table.Put(s.key("k"), row{Name: "two"}).If(table.NotExists()))
	s.wantRow("k", row{Name: "two"})
	s.write(table.Delete(s.key("k")))
	s.write(table.Update(s.key("k")).Add("count", 1))
	s.wantRow("k", row{Count: 1})
}

func writeNothing(t *testing.T, s suite) { s.write() }

func expireKeeps(t *testing.T, s suite) {
	later := time.Now().Add(time.Hour)
	want := row{Name: "n", Count: 1, Tags: []string{"a"}}
	s.write(table.Put(s.key("k"), want).Expire(later))
	s.wantRow("k", want)
	s.write(table.Update(s.key("k")).Expire(later.Add(time.Hour)))
	s.wantRow("k", want)
	var got row
	if err := s.Update(t.Context(), table.Update(s.key("k")).Add("count", 1).Expire(later), &got); err != nil || got.Count != 2 {
		t.Errorf("got %+v and error %v, want count 2", got, err)
	}
	s.write(table.Update(s.key("k")).Add("count", 1))
	want.Count = 3
	s.wantRow("k", want)
	s.put("k", want)
	s.wantRow("k", want)
	s.write(table.Update(s.key("made")).Set("name", "x").Expire(later))
	s.wantRow("made", row{Name: "x"})
}

func expirePassed(t *testing.T, s suite) {
	s.write(table.Put(s.key("k"), row{Name: "n"}).Expire(time.Now().Add(-time.Hour)))
	items, err := s.GetMany(t.Context(), s.key("k"))
	if err != nil {
		t.Fatal(err)
	}
	if items[0].Found() && s.decode(items[0]).Name != "n" {
		t.Errorf("got %+v, want it missing or as it was put", s.decode(items[0]))
	}
}

func relaxedWrites(t *testing.T, s suite) {
	s.write(table.Put(s.key("k"), row{Name: "n"}).Relax())
	s.wantRow("k", row{Name: "n"})
	for i := range 20 {
		var got row
		if err := s.Update(t.Context(), table.Update(s.key("k")).Add("count", 1).Relax(), &got); err != nil || got.Count != int64(i+1) {
			t.Fatalf("update %d: got %+v and error %v", i, got, err)
		}
	}
	s.wantRefused(s.Write(t.Context(), table.Delete(s.key("k")).If(table.NotExists()).Relax()), 0)
	s.wantRow("k", row{Name: "n", Count: 20})
	s.write(table.Delete(s.key("k")).Relax())
	s.wantMissing("k")
}

func relaxedMix(t *testing.T, s suite) {
	s.write(table.Put(s.key("a"), row{Name: "a"}).Relax(), table.Put(s.key("b"), row{Name: "b"}))
	s.wantRow("a", row{Name: "a"})
	s.wantRow("b", row{Name: "b"})
	s.wantRefused(s.Write(t.Context(),
		table.Update(s.key("a")).Add("count", 1).Relax(),
		table.Check(s.key("b"), table.NotExists()),
	), 1)
	s.wantRow("a", row{Name: "a"})
}
