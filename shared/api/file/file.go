// Package file has the endpoints of files that are there: download, list,
// delete, restore, and what is known of one. It may import the domains. Start
// with download.go.
package file

import (
	"ferry/shared/files"
	"ferry/shared/notify"

	"ferry/shared/api"
)

// Service returns the users' files.
func Service(p *api.Ports) *files.Service {
	return files.New(files.Config{
		Ports: p.Ports, Blobs: p.Blobs, Parts: p.Parts, Outbox: Outbox(p),
		Retention: p.Retention,
	})
}

// Outbox returns the outbox that tells of files.
func Outbox(p *api.Ports) notify.Outbox {
	return notify.NewOutbox(p.Ports, p.Notices, p.PublicURL, p.Events)
}
