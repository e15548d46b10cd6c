// Package downloadfilebackup is GET /download/file/backup: specification
// section 4.5.

package file

import (
	"net/http"

	"ferry/shared/blob"

	"ferry/shared/api"
)

// Endpoint names the endpoint and its routes.
func DownloadBackup() api.Endpoint {
	return api.Endpoint{
		Name:   "downloadfilebackup",
		Routes: []api.Route{{Method: "GET", Path: "/download/file/backup"}, {Method: "HEAD", Path: "/download/file/backup"}},
		New:    NewDownloadBackup,
	}
}

// New returns the handler. It needs the ports Table and Blobs.
func NewDownloadBackup(p *api.Ports) http.Handler { return newDownload(p, blob.Backup, "z") }
