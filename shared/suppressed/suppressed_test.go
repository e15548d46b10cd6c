package suppressed_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"ferry/shared/suppressed"
	"ferry/shared/table"
	"ferry/shared/table/dynamo"
	"ferry/shared/table/sqlite"
)

// onTables runs a test on each store that there is.
func onTables(t *testing.T, test func(*testing.T, table.Table)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "ferry.db"), sqlite.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		test(t, db)
	})
	t.Run("DynamoDB", func(t *testing.T) {
		t.Parallel()
		if os.Getenv("FERRY_TEST_AWS") == "" {
			t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./shared/suppressed")
		}
		cfg, err := config.LoadDefaultConfig(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		client, name := dynamodb.NewFromConfig(cfg), "ferry-"+rand.Text()
		if err := dynamo.CreateTable(t.Context(), client, name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}) })
		test(t, dynamo.New(client, name))
	})
}

const ann = "ann@example.com"

func at() time.Time { return time.Date(2026, 8, 7, 14, 30, 0, 0, time.UTC) }

func TestAnAddressIsSuppressedUntilItIsAllowed(t *testing.T) {
	t.Parallel()
	onTables(t, func(t *testing.T, db table.Table) {
		if _, ok, err := suppressed.Get(t.Context(), db, ann); err != nil || ok {
			t.Fatalf("at first: %v, %v", ok, err)
		}
		if err := db.Write(t.Context(), suppressed.Add(" Ann@Example.COM", suppressed.Bounced, "550", at())); err != nil {
			t.Fatal(err)
		}
		want := suppressed.Entry{To: ann, Refused: suppressed.Bounced, Detail: "550", RefusedAt: at().UnixMilli()}
		for _, address := range []string{ann, "ANN@example.com "} {
			if got, ok, err := suppressed.Get(t.Context(), db, address); err != nil || !ok || got != want {
				t.Errorf("%s: %+v, %v, %v", address, got, ok, err)
			}
		}
		for i, want := range []bool{true, false} {
			if was, left, err := suppressed.Allow(t.Context(), db, "aNN@example.com"); err != nil || was != want || left.Causes() != nil {
				t.Errorf("allowing it, time %d: %v, %+v, %v", i+1, was, left, err)
			}
		}
		if items, err := db.GetMany(t.Context(), suppressed.Key(ann)); err != nil || items[0].Found() {
			t.Errorf("at last the address is kept, %v", err)
		}
	})
}

// step is what happens to ann's address.
type step func(context.Context, table.Table) error

func add(why suppressed.Reason, after time.Duration) step {
	return func(ctx context.Context, db table.Table) error {
		return db.Write(ctx, suppressed.Add(ann, why, "said", at().Add(after)))
	}
}

func stop(after time.Duration) step {
	return func(ctx context.Context, db table.Table) error {
		_, err := suppressed.Stop(ctx, db, ann, at().Add(after))
		return err
	}
}

func undo(ctx context.Context, db table.Table) error {
	_, err := suppressed.Resume(ctx, db, ann)
	return err
}

func allow(ctx context.Context, db table.Table) error {
	_, _, err := suppressed.Allow(ctx, db, ann)
	return err
}

// old writes an entry as the first layout had it.
func old(reason string) step {
	return func(ctx context.Context, db table.Table) error {
		return db.Write(ctx, table.Put(suppressed.Key(ann), struct {
			V      int64  `json:"v"`
			To     string `json:"to"`
			Reason string `json:"reason"`
			Detail string `json:"detail,omitempty"`
			At     int64  `json:"at"`
		}{1, ann, reason, "said", at().UnixMilli()}))
	}
}

func TestTheProvidersReasonAndTheOwnersWishComeAndGoByThemselves(t *testing.T) {
	t.Parallel()
	const later = time.Hour
	bounced := suppressed.Cause{Reason: suppressed.Bounced, Detail: "said", At: at().UnixMilli()}
	complained := suppressed.Cause{Reason: suppressed.Complained, Detail: "said", At: at().Add(later).UnixMilli()}
	stopped := suppressed.Cause{Reason: suppressed.Stopped, At: at().UnixMilli()}
	stoppedLater := suppressed.Cause{Reason: suppressed.Stopped, At: at().Add(later).UnixMilli()}
	tests := []struct {
		name  string
		steps []step
		want  []suppressed.Cause
	}{
		{"a bounce over a wish", []step{stop(0), add(suppressed.Bounced, 0)}, []suppressed.Cause{bounced, stopped}},
		{"a wish over a bounce", []step{add(suppressed.Bounced, 0), stop(later)}, []suppressed.Cause{bounced, stoppedLater}},
		{"a wish that is repeated keeps its time", []step{stop(0), stop(later)}, []suppressed.Cause{stopped}},
		{"a complaint takes a bounce's place", []step{add(suppressed.Bounced, 0), stop(0), add(suppressed.Complained, later)}, []suppressed.Cause{complained, stopped}},
		{"an undo leaves the bounce", []step{stop(0), add(suppressed.Bounced, 0), undo}, []suppressed.Cause{bounced}},
		{"an undo of no wish leaves the bounce", []step{add(suppressed.Bounced, 0), undo}, []suppressed.Cause{bounced}},
		{"allowing leaves the wish", []step{stop(0), add(suppressed.Bounced, 0), allow}, []suppressed.Cause{stopped}},
		{"allowing what is only stopped leaves the wish", []step{stop(0), allow}, []suppressed.Cause{stopped}},
		{"both ended, the wish first", []step{stop(0), add(suppressed.Bounced, 0), undo, allow}, nil},
		{"both ended, the reason first", []step{stop(0), add(suppressed.Bounced, 0), allow, undo}, nil},
		{"a bounce of the old form", []step{old("bounced")}, []suppressed.Cause{bounced}},
		{"a wish of the old form", []step{old("stopped")}, []suppressed.Cause{stopped}},
		{"a bounce over a wish of the old form", []step{old("stopped"), add(suppressed.Complained, later)}, []suppressed.Cause{complained, stopped}},
		{"a wish over a bounce of the old form", []step{old("bounced"), stop(later)}, []suppressed.Cause{bounced, stoppedLater}},
		{"a complaint over a bounce of the old form", []step{old("bounced"), add(suppressed.Complained, later)}, []suppressed.Cause{complained}},
		{"a wish over one of the old form keeps its time", []step{old("stopped"), stop(later)}, []suppressed.Cause{stopped}},
		{"an undo of the old form", []step{old("stopped"), undo}, nil},
		{"an undo of the old form leaves a later bounce", []step{old("stopped"), add(suppressed.Complained, later), undo}, []suppressed.Cause{complained}},
		{"an undo leaves a bounce of the old form", []step{old("bounced"), stop(0), undo}, []suppressed.Cause{bounced}},
		{"allowing a bounce of the old form", []step{old("bounced"), allow}, nil},
		{"allowing a bounce of the old form leaves the wish", []step{old("bounced"), stop(later), allow}, []suppressed.Cause{stoppedLater}},
		{"allowing leaves a wish of the old form", []step{old("stopped"), add(suppressed.Complained, later), allow}, []suppressed.Cause{stopped}},
	}
	onTables(t, func(t *testing.T, db table.Table) {
		for _, tt := range tests { // one after another: all are of one address
			if err := db.Write(t.Context(), table.Delete(suppressed.Key(ann))); err != nil {
				t.Fatal(err)
			}
			for _, do := range tt.steps {
				if err := do(t.Context(), db); err != nil {
					t.Fatalf("%s: %v", tt.name, err)
				}
			}
			e, ok, err := suppressed.Get(t.Context(), db, ann)
			if err != nil || ok != (tt.want != nil) || !slices.Equal(e.Causes(), tt.want) {
				t.Errorf("%s: %+v, %v, %v", tt.name, e, ok, err)
			}
			var listed []suppressed.Cause
			for e, err := range suppressed.All(t.Context(), db) {
				if err != nil || e.To != ann {
					t.Fatalf("%s: %+v, %v", tt.name, e, err)
				}
				listed = append(listed, e.Causes()...)
			}
			if !slices.Equal(listed, tt.want) {
				t.Errorf("%s: listed is %+v", tt.name, listed)
			}
		}
	})
}

// between does something when an entry was read, once.
type between struct {
	table.Table
	do func()
}

func (b *between) Get(ctx context.Context, key table.Key, into any) error {
	err := b.Table.Get(ctx, key, into)
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return err
}

func TestNothingIsLostThatComesWhileTheOtherEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name               string
		begin, comes, ends step
		want               suppressed.Reason
	}{
		{"a wish, while a bounce is allowed", add(suppressed.Bounced, 0), stop(0), allow, suppressed.Stopped},
		{"a bounce, while a wish is undone", stop(0), add(suppressed.Bounced, 0), undo, suppressed.Bounced},
		{"a wish, while a bounce of the old form is allowed", old("bounced"), stop(0), allow, suppressed.Stopped},
		{"a bounce, while a wish of the old form is undone", old("stopped"), add(suppressed.Bounced, 0), undo, suppressed.Bounced},
	}
	onTables(t, func(t *testing.T, db table.Table) {
		for _, tt := range tests {
			if err := db.Write(t.Context(), table.Delete(suppressed.Key(ann))); err != nil {
				t.Fatal(err)
			}
			if err := tt.begin(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			b := &between{Table: db, do: func() {
				if err := tt.comes(t.Context(), db); err != nil {
					t.Error(err)
				}
			}}
			if err := tt.ends(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			e, _, err := suppressed.Get(t.Context(), db, ann)
			if all := e.Causes(); err != nil || len(all) != 1 || all[0].Reason != tt.want {
				t.Errorf("%s: %+v, %v", tt.name, e, err)
			}
		}
	})
}

func TestTheListHasEachAddressOnce(t *testing.T) {
	t.Parallel()
	onTables(t, func(t *testing.T, db table.Table) {
		var want, got []string
		for i := range 30 {
			address := fmt.Sprintf("user%02d@example.com", i)
			want = append(want, address)
			for _, a := range []string{address, strings.ToUpper(address)} {
				if err := db.Write(t.Context(), suppressed.Add(a, suppressed.Stopped, "", at())); err != nil {
					t.Fatal(err)
				}
			}
		}
		for e, err := range suppressed.All(t.Context(), db) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.To)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	})
}

func TestAKeyHoldsNoAddress(t *testing.T) {
	t.Parallel()
	if key := suppressed.Key("ann@example.com"); strings.Contains(key.String(), "ann") || len(key.SK) != 43 {
		t.Errorf("got %v", key)
	}
}
