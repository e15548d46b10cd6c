package boottest

import (
	"context"
	"fmt"

	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/table"
)

// Notices stores the unsent notices that the events of email and sms refer to.
func Notices(ctx context.Context, p *service.Service) error {
	for _, n := range []notify.Notice{
		{ID: "1759460400000-0a1b2c3d4e5f6071", Channel: files.Mail, To: "carla@example.com"},
		{ID: "1759460400002-7766554433221100", Channel: files.SMS, To: "+393401234567"},
	} {
		n.V, n.Kind, n.Lang, n.Base, n.Created = 1, notify.Link, "en", "https://files.example.com/v1", p.Now().Unix()
		n.Owner, n.Area, n.File, n.Name, n.Length, n.Sender = "alice", blob.Files, 1, "Übersicht 1.png", 16, "alice"
		if err := p.Table.Write(ctx, table.Put(n.Key(), n)); err != nil {
			return fmt.Errorf("storing %s: %w", n.ID, err)
		}
	}
	return nil
}
