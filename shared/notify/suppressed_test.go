package notify_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/table/dynamo"
	"ferry/shared/table/tabletest"
)

// onTables runs a test on each kind of table.
func onTables(t *testing.T, test func(*testing.T, table.Table)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, open(t))
	})
	t.Run("DynamoDB", func(t *testing.T) {
		t.Parallel()
		if os.Getenv("FERRY_TEST_AWS") == "" {
			t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./shared/notify")
		}
		cfg, err := config.LoadDefaultConfig(t.Context())
		must(t, err)
		client, name := dynamodb.NewFromConfig(cfg), "ferry-"+rand.Text()
		must(t, tabletest.CreateTable(t.Context(), client, name))
		t.Cleanup(func() { client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}) })
		test(t, dynamo.New(client, name))
	})
}

const ann = "ann@example.com"

func suppressedAt() time.Time { return time.Date(2026, 8, 7, 14, 30, 0, 0, time.UTC) }

func TestAddressIsSuppressedUntilItIsAllowed(t *testing.T) {
	t.Parallel()
	onTables(t, func(t *testing.T, db table.Table) {
		if _, ok, err := notify.Suppressed(t.Context(), db, ann); err != nil || ok {
			t.Fatalf("at first: %v, %v", ok, err)
		}
		must(t, db.Write(t.Context(), notify.Suppress(" Ann@Example.COM", notify.AddressBounced, "550", suppressedAt())))
		want := notify.Suppression{V: 2, To: ann, Refused: notify.AddressBounced, Detail: "550", RefusedAt: suppressedAt().UnixMilli()}
		for _, address := range []string{ann, "ANN@example.com "} {
			if got, ok, err := notify.Suppressed(t.Context(), db, address); err != nil || !ok || got != want {
				t.Errorf("%s: %+v, %v, %v", address, got, ok, err)
			}
		}
		for i, want := range []bool{true, false} {
			if was, left, err := notify.AllowMail(t.Context(), db, "aNN@example.com"); err != nil || was != want || left.Causes() != nil {
				t.Errorf("allowing it, time %d: %v, %+v, %v", i+1, was, left, err)
			}
		}
		if items, err := db.GetMany(t.Context(), notify.SuppressedKey(ann)); err != nil || items[0].Found() {
			t.Errorf("in the end the address is still stored, %v", err)
		}
	})
}

// step changes an address's entry.
type step func(context.Context, table.Table, string) error

func add(why notify.SuppressReason, after time.Duration) step {
	return func(ctx context.Context, db table.Table, address string) error {
		return db.Write(ctx, notify.Suppress(strings.ToUpper(address), why, "said", suppressedAt().Add(after)))
	}
}

func stop(after time.Duration) step {
	return func(ctx context.Context, db table.Table, address string) error {
		_, err := notify.StopMail(ctx, db, address, suppressedAt().Add(after))
		return err
	}
}

func undo(ctx context.Context, db table.Table, address string) error {
	_, err := notify.ResumeMail(ctx, db, address)
	return err
}

func allow(ctx context.Context, db table.Table, address string) error {
	_, _, err := notify.AllowMail(ctx, db, address)
	return err
}

func TestProvidersReasonAndOwnersWishAreIndependent(t *testing.T) {
	t.Parallel()
	const later = time.Hour
	bounced := notify.SuppressCause{Reason: notify.AddressBounced, Detail: "said", At: suppressedAt().UnixMilli()}
	complained := notify.SuppressCause{Reason: notify.AddressComplained, Detail: "said", At: suppressedAt().Add(later).UnixMilli()}
	stopped := notify.SuppressCause{Reason: notify.AddressStopped, At: suppressedAt().UnixMilli()}
	stoppedLater := notify.SuppressCause{Reason: notify.AddressStopped, At: suppressedAt().Add(later).UnixMilli()}
	tests := []struct {
		name  string
		steps []step
		want  []notify.SuppressCause
	}{
		{"a bounce over a wish", []step{stop(0), add(notify.AddressBounced, 0)}, []notify.SuppressCause{bounced, stopped}},
		{"a wish over a bounce", []step{add(notify.AddressBounced, 0), stop(later)}, []notify.SuppressCause{bounced, stoppedLater}},
		{"a wish that is repeated keeps its time", []step{stop(0), stop(later)}, []notify.SuppressCause{stopped}},
		{"a complaint takes a bounce's place", []step{add(notify.AddressBounced, 0), stop(0), add(notify.AddressComplained, later)}, []notify.SuppressCause{complained, stopped}},
		{"an undo leaves the bounce", []step{stop(0), add(notify.AddressBounced, 0), undo}, []notify.SuppressCause{bounced}},
		{"an undo without a wish leaves the bounce", []step{add(notify.AddressBounced, 0), undo}, []notify.SuppressCause{bounced}},
		{"allowing leaves the wish", []step{stop(0), add(notify.AddressBounced, 0), allow}, []notify.SuppressCause{stopped}},
		{"allowing what is only stopped leaves the wish", []step{stop(0), allow}, []notify.SuppressCause{stopped}},
		{"both ended, the wish first", []step{stop(0), add(notify.AddressBounced, 0), undo, allow}, nil},
		{"both ended, the reason first", []step{stop(0), add(notify.AddressBounced, 0), allow, undo}, nil},
	}
	onTables(t, func(t *testing.T, db table.Table) {
		for _, tt := range tests { // one after another, as all use one address
			must(t, db.Write(t.Context(), table.Delete(notify.SuppressedKey(ann))))
			for _, do := range tt.steps {
				if err := do(t.Context(), db, ann); err != nil {
					t.Fatalf("%s: %v", tt.name, err)
				}
			}
			e, ok, err := notify.Suppressed(t.Context(), db, ann)
			if err != nil || ok != (tt.want != nil) || !slices.Equal(e.Causes(), tt.want) {
				t.Errorf("%s: %+v, %v, %v", tt.name, e, ok, err)
			}
			var listed []notify.SuppressCause
			for e, err := range notify.AllSuppressed(t.Context(), db) {
				if err != nil || e.To != ann {
					t.Fatalf("%s: %+v, %v", tt.name, e, err)
				}
				listed = append(listed, e.Causes()...)
			}
			if !slices.Equal(listed, tt.want) {
				t.Errorf("%s: the list has %+v", tt.name, listed)
			}
		}
	})
}

func TestReasonAddedWhileAnotherEndsIsKept(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name               string
		begin, comes, ends step
		want               notify.SuppressReason
	}{
		{"a wish, while a bounce is allowed", add(notify.AddressBounced, 0), stop(0), allow, notify.AddressStopped},
		{"a bounce, while a wish is undone", stop(0), add(notify.AddressBounced, 0), undo, notify.AddressBounced},
	}
	onTables(t, func(t *testing.T, db table.Table) {
		for _, tt := range tests {
			must(t, db.Write(t.Context(), table.Delete(notify.SuppressedKey(ann))))
			must(t, tt.begin(t.Context(), db, ann))
			b := &double{Table: db, read: func() {
				if err := tt.comes(t.Context(), db, ann); err != nil {
					t.Error(err)
				}
			}}
			must(t, tt.ends(t.Context(), b, ann))
			e, _, err := notify.Suppressed(t.Context(), db, ann)
			if all := e.Causes(); err != nil || len(all) != 1 || all[0].Reason != tt.want {
				t.Errorf("%s: %+v, %v", tt.name, e, err)
			}
		}
	})
}

func TestListHasEachAddressOnce(t *testing.T) {
	t.Parallel()
	onTables(t, func(t *testing.T, db table.Table) {
		var want, got []string
		for i := range 30 {
			address := fmt.Sprintf("user%02d@example.com", i)
			want = append(want, address)
			for _, a := range []string{address, strings.ToUpper(address)} {
				must(t, db.Write(t.Context(), notify.Suppress(a, notify.AddressStopped, "", suppressedAt())))
			}
		}
		for e, err := range notify.AllSuppressed(t.Context(), db) {
			must(t, err)
			got = append(got, e.To)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	})
}

func TestSuppressedKeyHoldsNoAddress(t *testing.T) {
	t.Parallel()
	if key := notify.SuppressedKey("ann@example.com"); strings.Contains(key.String(), "ann") || len(key.SK) != 43 {
		t.Errorf("got %v", key)
	}
}
