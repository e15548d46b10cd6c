package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/table/dynamo"
	"ferry/shared/table/sqlite"
	"ferry/shared/table/tabletest"
)

// fillOutbox puts a notice that waits, one that was given up, a PIN, and three
// suppressed addresses in a table.
func fillOutbox(t *testing.T, db table.Table) (waiting, failed, pin string) {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	link := notify.Notice{
		Kind: notify.Link, Channel: files.Mail, To: "ann@example.com", Expires: now.Add(time.Hour).Unix(),
		Owner: "demo", Area: blob.Files, File: 1, Name: "re\tport.pdf",
	}
	code := notify.Notice{Kind: notify.PIN, Channel: files.Mail, To: "demo@example.net", Expires: now.Add(time.Hour).Unix(), User: "demo", Nonce: "the-nonce"}
	failing := link
	failing.Channel = "fax"
	err := db.Write(ctx, link.Op(now, "waiting"), failing.Op(now, "failed"), code.Op(now, "pin"),
		table.Put(table.Key{PK: "files#demo", SK: fmt.Sprintf("%016d", 1)}, struct {
			V int64 `json:"v"`
		}{1}),
		notify.Suppress("Bob@example.com", notify.AddressBounced, "550 no", now), notify.Suppress("eve@example.com", notify.AddressStopped, "", now),
		notify.Suppress("kim@example.com", notify.AddressComplained, "abuse", now))
	if err == nil {
		err = db.Write(ctx, notify.Suppress("kim@example.com", notify.AddressStopped, "", now))
	}
	must(t, err)
	text, err := keys.RandomToken(rand.Reader)
	must(t, err)
	key, err := keys.Parse(text)
	must(t, err)
	sender, err := notify.NewSender(notify.Config{Table: db, Key: key, From: "ferry@example.org", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	failing.ID = notify.ID(now, "failed")
	if _, err := sender.Handle(ctx, failing.Key()); err != nil {
		t.Fatal(err)
	}
	return notify.ID(now, "waiting"), failing.ID, notify.CodePrefix + notify.ID(now, "pin")
}

// testOutbox fills a table and runs all outbox commands on it.
func testOutbox(t *testing.T, db table.Table, run func(args ...string) result) {
	waiting, failed, pin := fillOutbox(t, db)
	ids := func(args ...string) (ids []string) {
		r := run(append([]string{"outbox", "list", "--json"}, args...)...)
		var all []struct{ ID string }
		if err := json.Unmarshal([]byte(r.out), &all); err != nil || r.code != exitOK {
			t.Fatalf("code %d, %v: %s%s", r.code, err, r.out, r.err)
		}
		if strings.Contains(r.out, "nonce") {
			t.Errorf("a PIN can be derived from %s", r.out)
		}
		for _, n := range all {
			ids = append(ids, n.ID)
		}
		slices.Sort(ids)
		return ids
	}
	want := []string{pin, failed, waiting}
	slices.Sort(want)
	if got := ids(); !slices.Equal(got, want) {
		t.Errorf("listed: %v, want %v", got, want)
	}
	if got := ids("--failed"); !slices.Equal(got, []string{failed}) {
		t.Errorf("failed: %v", got)
	}
	if got := ids("--limit", "1"); len(got) != 2 { // of each kind
		t.Errorf("with a limit: %v", got)
	}
	for _, step := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"list", exitOK, failed, ""},
		{"list", exitOK, "fax", ""},
		{"show " + waiting, exitOK, `"state": "queued"`, ""},
		{"show " + failed, exitOK, `no provider is configured for the channel`, ""},
		{"show nobody", exitNoFile, "", notify.ErrUnknown.Error()},
		{"retry", exitUsage, "", "--all-failed"},
		{"retry --all-failed " + failed, exitUsage, "", "--all-failed"},
		{"retry --all-failed", exitOK, "", failed + " is due"},
		{"list --failed", exitOK, "no waiting or failed notices", ""},
		{"retry nobody " + waiting, exitNoFile, "", waiting + " is due"},
		{"cancel " + waiting + " " + pin, exitOK, "", pin + " is cancelled"},
		{"show " + waiting, exitOK, `"lastError": "cancelled"`, ""},
		{"cancel " + waiting, exitRefused, "", "the notice has already failed"},
		{"retry " + waiting, exitOK, "", "is due"},
		{"suppressed", exitOK, "bob@example.com", ""},
		{"suppressed --json EVE@example.com", exitOK, `"reason":"stopped"`, ""},
		{"suppressed ann@example.com", exitUnknown, "", "not suppressed"},
		{"allow BOB@example.com", exitOK, "", "gets mail again"},
		{"allow bob@example.com", exitUnknown, "", "not suppressed"},
		{"allow eve@example.com", exitRefused, "", "its owner has stopped"},
		{"suppressed eve@example.com", exitOK, "stopped", ""},
		{"suppressed --json kim@example.com", exitOK, `"reason":"complained","detail":"abuse"`, ""},
		{"suppressed --json kim@example.com", exitOK, `"reason":"stopped"`, ""},
		{"allow kim@example.com", exitOK, "", "codes for a new password again, but nothing else: its owner has stopped"},
		{"allow kim@example.com", exitRefused, "", "its owner has stopped"},
		{"suppressed kim@example.com", exitOK, "stopped", ""},
		{"allow nobody@example.com", exitUnknown, "", "not suppressed"},
		{"list --limit 0", exitUsage, "", "--limit"},
		{"list --help", exitOK, "have failed", ""},
		{"retry --help", exitOK, "another day", ""},
	} {
		r := run(append([]string{"outbox"}, strings.Fields(step.args)...)...)
		if r.code != step.code || !strings.Contains(r.out, step.out) || !strings.Contains(r.err, step.err) {
			t.Errorf("ferry outbox %s: code %d, want %d: %s%s", step.args, r.code, step.code, r.out, r.err)
		}
		if strings.Contains(r.out, "\t") {
			t.Errorf("ferry outbox %s prints a control character from a file's name: %q", step.args, r.out)
		}
	}
}

func TestOutboxOfThisMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runFerry(t, dir, "", "user", "add", "demo").want(t, exitOK)
	db, err := sqlite.Open(filepath.Join(dir, "table.sqlite"), sqlite.Options{NoSync: true})
	must(t, err)
	defer db.Close()
	testOutbox(t, db, func(args ...string) result { return runFerry(t, dir, "", args...) })
}

func TestOutboxOfAStack(t *testing.T) {
	t.Parallel()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/ferry")
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	must(t, err)
	client, name := dynamodb.NewFromConfig(cfg), "ferry-"+rand.Text()
	must(t, tabletest.CreateTable(t.Context(), client, name))
	t.Cleanup(func() { client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}) })
	testOutbox(t, dynamo.New(client, name), func(args ...string) result {
		return runFerry(t, t.TempDir(), "", slices.Insert(args, 2, "--table", name)...)
	})
}
