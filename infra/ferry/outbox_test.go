package main

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// fillOutbox puts a notice that waits, one that was given up, a PIN, and three
// suppressed addresses in a table.
func fillOutbox(t testing.TB, db table.Table) (waiting, failed, pin string) {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	link := notify.Notice{
		Kind: notify.Link, Channel: files.Mail, To: "ann@example.com", Expires: now.Add(time.Hour).Unix(),
		Owner: "demo", Area: blob.Files, File: 1, Name: "re\tport.pdf",
	}
	code := notify.Notice{
		Kind:    notify.PIN,
		Channel: files.Mail,
		To:      "demo@example.net",
		Expires: now.Add(time.Hour).Unix(),
		User:    "demo",
		Nonce:   "the-nonce",
	}
	failing := link
	failing.Channel = "fax"
	err := db.Write(ctx, link.Op(now, "waiting"), failing.Op(now, "failed"), code.Op(now, "pin"),
		table.Put(table.Key{PK: "files#demo", SK: fmt.Sprintf("%016d", 1)}, struct {
			V int64 `json:"v"`
		}{1}),
		notify.Suppress(
			"Bob@example.com",
			notify.AddressBounced,
			"550 no",
			now,
		), notify.Suppress("eve@example.com", notify.AddressStopped, "", now),
		notify.Suppress("kim@example.com", notify.AddressComplained, "abuse", now))
	if err == nil {
		err = db.Write(ctx, notify.Suppress("kim@example.com", notify.AddressStopped, "", now))
	}
	must(t, err)
	text, err := keys.RandomToken(rand.Reader)
	must(t, err)
	key, err := keys.Parse(text)
	must(t, err)
	sender, err := notify.NewSender(notify.Config{
		Table: db,
		Key:   key,
		From:  "ferry@example.org",
		Now:   time.Now,
		Log:   slog.New(slog.DiscardHandler),
	})
	must(t, err)
	failing.ID = notify.ID(now, "failed")
	if _, err := sender.Handle(ctx, failing.Key()); err != nil {
		t.Fatal(err)
	}
	return notify.ID(now, "waiting"), failing.ID, notify.CodePrefix + notify.ID(now, "pin")
}
