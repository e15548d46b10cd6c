package boottest

import (
	"context"
	"fmt"
	"slices"

	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/service"
	"ferry/shared/table"
)

// The notices that the events of email, sms and feedback refer to.
const (
	MailNotice = "1759460400000-0a1b2c3d4e5f6071"
	TextNotice = "1759460400002-7766554433221100"
)

// named accepts each message with the id that the feedback events use, and sends nothing.
type named[M any] string

// Send implements mail.Sender and notify.TextSender.
func (id named[M]) Send(context.Context, M) (string, error) { return string(id), nil }

// Notices stores the notices that a fixture refers to, if any: unsent, or already sent
// if the fixture is feedback on them.
func (f Fixture) Notices(ctx context.Context, p *service.Service) error {
	if !slices.Contains([]string{"email", "sms", "feedback"}, f.Function) {
		return nil
	}
	sender, err := notify.NewSender(notify.Config{
		Table: p.Table, Key: p.Key, From: "ferry@example.com",
		Couriers: map[files.Channel]notify.Courier{
			files.Mail: notify.ByMail(named[mail.Message]("010201999b0f0000-11112222-3333")),
			files.SMS:  notify.ByText(named[notify.TextMessage]("34d9b400-c6dd-5444-820d-fbeb0f1f54cf")),
		},
		Now: p.Now, Log: p.Log, OnEnd: []notify.OnEnd{notify.Remember(p.Now)},
	})
	if err != nil {
		return err
	}
	for _, n := range []notify.Notice{
		{ID: MailNotice, Channel: files.Mail, To: "carla@example.com"},
		{ID: TextNotice, Channel: files.SMS, To: "+393401234567"},
	} {
		n.V, n.Kind, n.Lang, n.Base, n.Created = 1, notify.Link, "en", "https://files.example.com/v1", p.Now().Unix()
		n.Owner, n.Area, n.File, n.Name, n.Length, n.Sender = "alice", blob.Files, 1, "Übersicht 1.png", 16, "alice"
		if err := p.Table.Write(ctx, table.Put(n.Key(), n)); err != nil {
			return fmt.Errorf("storing %s: %w", n.ID, err)
		}
		if f.Function != "feedback" {
			continue
		}
		if _, err := sender.Handle(ctx, n.Key()); err != nil {
			return fmt.Errorf("sending %s: %w", n.ID, err)
		}
	}
	return nil
}
