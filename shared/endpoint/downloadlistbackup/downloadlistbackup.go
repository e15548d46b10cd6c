// Package downloadlistbackup is GET /download/list/backup: the caller's backup
// area.
package downloadlistbackup

import (
	"net/http"

	"ferry/shared/blob"
	"ferry/shared/endpoint"
	"ferry/shared/listing"
)

// Endpoint names the endpoint and its routes.
func Endpoint() endpoint.Endpoint {
	return endpoint.Endpoint{
		Name:   "downloadlistbackup",
		Routes: []endpoint.Route{{Method: "GET", Path: "/download/list/backup"}, {Method: "HEAD", Path: "/download/list/backup"}},
		New:    New,
	}
}

// New returns the handler. It needs the port Table and the link key.
func New(p *endpoint.Ports) http.Handler { return listing.New(p, blob.Backup) }
