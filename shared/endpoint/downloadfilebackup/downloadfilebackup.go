// Package downloadfilebackup is GET /download/file/backup: specification
// section 4.5.
package downloadfilebackup

import (
	"net/http"

	"ferry/shared/blob"
	"ferry/shared/endpoint"
	"ferry/shared/serve"
)

// Endpoint names the endpoint and its routes.
func Endpoint() endpoint.Endpoint {
	return endpoint.Endpoint{
		Name:   "downloadfilebackup",
		Routes: []endpoint.Route{{Method: "GET", Path: "/download/file/backup"}, {Method: "HEAD", Path: "/download/file/backup"}},
		New:    New,
	}
}

// New returns the handler. It needs the ports Table and Blobs.
func New(p *endpoint.Ports) http.Handler { return serve.New(p, blob.Backup, "z") }
