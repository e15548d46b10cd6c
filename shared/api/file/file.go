// Package file has the endpoints of files that are there: download, list,
// delete, restore, and what is known of one. It may import api and the domains
// (auth, files, notify), and no backend. Start reading with download.go.
package file

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/notify"
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

// Download is GET /download/file: specification section 4.4.
func Download() api.Endpoint {
	return api.Named("downloadfile", func(p *api.Ports) http.Handler { return newDownload(p, blob.Files, "k") })
}

// DownloadBackup is GET /download/file/backup: specification section 4.5.
func DownloadBackup() api.Endpoint {
	return api.Named("downloadfilebackup", func(p *api.Ports) http.Handler { return newDownload(p, blob.Backup, "z") })
}

// List is GET /download/list: the caller's user area.
func List() api.Endpoint {
	return api.Named("downloadlist", func(p *api.Ports) http.Handler { return newList(p, blob.Files) })
}

// ListBackup is GET /download/list/backup: the caller's backup area.
func ListBackup() api.Endpoint {
	return api.Named("downloadlistbackup", func(p *api.Ports) http.Handler { return newList(p, blob.Backup) })
}
