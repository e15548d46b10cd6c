// Package downloadlistbackup is GET /download/list/backup: the caller's backup
// area.

package file

import (
	"net/http"

	"ferry/shared/blob"

	"ferry/shared/api"
)

// Endpoint names the endpoint and its routes.
func ListBackup() api.Endpoint {
	return api.Endpoint{
		Name:   "downloadlistbackup",
		Routes: []api.Route{{Method: "GET", Path: "/download/list/backup"}, {Method: "HEAD", Path: "/download/list/backup"}},
		New:    NewListBackup,
	}
}

// New returns the handler. It needs the port Table and the link key.
func NewListBackup(p *api.Ports) http.Handler { return newList(p, blob.Backup) }
