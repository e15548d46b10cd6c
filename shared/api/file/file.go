// Package file has the endpoints of files that are there: download, list,
// delete, restore, and what is known of one. It may import api and the domains
// (auth, files, notify), and no backend. Start reading with download.go.
package file

import (
	"context"
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
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

// Delete is DELETE /files/{id}: it moves a file of the caller to the backup area
// and answers with the file as it is there.
func Delete() api.Endpoint {
	return api.Named("filesdelete", func(p *api.Ports) http.Handler { return newMove(p, (*files.Service).Delete) })
}

// Restore is POST /files/{id}/restore: it brings a file of the caller back from
// the backup area and answers with the file as it is then.
func Restore() api.Endpoint {
	return api.Named("filesrestore", func(p *api.Ports) http.Handler { return newMove(p, (*files.Service).Restore) })
}

// newMove returns the handler. It needs the ports Table and Blobs and the link key.
func newMove(
	p *api.Ports, move func(*files.Service, context.Context, auth.User, int64) (files.File, error),
) http.Handler {
	service := Service(p)
	return p.Authenticated(func(w http.ResponseWriter, r *http.Request, u auth.User) error {
		id, err := api.FileID(r)
		if err != nil {
			return err
		}
		f, err := move(service, r.Context(), u, id)
		if err != nil {
			return err
		}
		page := files.Page{Files: []files.Listed{service.Listed(f)}}
		return WriteList(r.Context(), w, p, ListPage{User: u.Name, Area: f.Area, Lang: api.Lang(r, u), Page: page})
	})
}
