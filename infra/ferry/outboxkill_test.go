package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// inFlight is how many mails a server sends at once: so many can arrive twice
// when it is killed, and no more.
const inFlight = 4

// TestKilledServerSendsTwiceOnlyWhatWasInFlight kills the server again
// and again while it empties its outbox.
func TestKilledServerSendsTwiceOnlyWhatWasInFlight(t *testing.T) {
	t.Parallel()
	const total, kills = 300, 5
	dir := t.TempDir()
	if r := runFerry(t, dir, "", "user", "add", "demo"); r.code != exitOK {
		t.Fatal(r.err)
	}
	db, err := sqlite.Open(filepath.Join(dir, "table.sqlite"), sqlite.Options{NoSync: true})
	must(t, err)
	defer db.Close()
	ids := manyNotices(t, db, total)
	mails := boottest.StartSMTP(t, boottest.SMTPOptions{})
	for round := range kills {
		s := serve(t, dir, "--smtp", "smtp://"+mails.Address)
		wait(t, "mails are sent", func() bool { return len(mails.Talk().Messages) > round*total/(kills+1) })
		must(t, s.Process.Kill())
		_ = s.Wait()
		endLeases(t, db)
	}
	serve(t, dir, "--smtp", "smtp://"+mails.Address)
	wait(t, "the outbox is empty", func() bool { return left(t, db) == 0 })

	came := map[string]int{}
	for _, m := range mails.Talk().Messages {
		_, rest, _ := strings.Cut(m, "Message-ID: <")
		id, _, _ := strings.Cut(rest, "@")
		came[id]++
	}
	twice := 0
	for _, id := range ids {
		if came[id] == 0 {
			t.Errorf("%s never came", id)
		}
		twice += max(came[id]-1, 0)
	}
	if len(came) != total || twice > kills*inFlight {
		t.Errorf("%d notices came, want %d; %d duplicate mails after %d kills, want at most %d", len(came), total, twice, kills, kills*inFlight)
	}
	t.Logf("%d duplicate mails after %d kills", twice, kills)
}

// manyNotices fills the outbox with notices of one file.
func manyNotices(t *testing.T, db table.Table, count int) (ids []string) {
	t.Helper()
	now := time.Now()
	f := files.File{V: 1, Owner: "demo", Area: blob.Files, ID: 1, Name: "report.pdf", Expires: now.Add(time.Hour).Unix()}
	must(t, db.Write(t.Context(), table.Put(files.Key(f.Area, f.Owner, f.ID), f)))
	for i := range count {
		n := notify.Notice{
			Kind: notify.Link, Channel: notify.Mail, To: fmt.Sprintf("ann%d@example.com", i), Lang: "en", Base: "https://ferry.example.org/v1",
			Expires: f.Expires, Owner: f.Owner, Area: f.Area, File: f.ID, Name: f.Name,
		}
		op := n.Op(now, fmt.Sprintf("%04d", i))
		must(t, db.Write(t.Context(), op))
		ids = append(ids, op.Key.SK)
	}
	return ids
}

// endLeases ends the leases of a killed server, as two minutes would.
func endLeases(t *testing.T, db table.Table) {
	t.Helper()
	for n, err := range notify.Waiting(t.Context(), db) {
		must(t, err)
		if n.State() != notify.Sending {
			continue
		}
		must(t, db.Write(t.Context(), table.Update(n.Key()).Set("notBefore", time.Now().UnixMilli())))
	}
}

// left counts the notices in the outbox.
func left(t *testing.T, db table.Table) (count int) {
	t.Helper()
	for _, err := range notify.Waiting(t.Context(), db) {
		must(t, err)
		count++
	}
	return count
}
