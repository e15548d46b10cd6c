// Package downloadfile is GET /download/file: specification section 4.4.

package file

import (
	"net/http"

	"ferry/shared/blob"

	"ferry/shared/api"
)

// Endpoint names the endpoint and its routes.
func Download() api.Endpoint {
	return api.Endpoint{
		Name:   "downloadfile",
		Routes: []api.Route{{Method: "GET", Path: "/download/file"}, {Method: "HEAD", Path: "/download/file"}},
		New:    NewDownload,
	}
}

// New returns the handler. It needs the ports Table and Blobs.
func NewDownload(p *api.Ports) http.Handler { return newDownload(p, blob.Files, "k") }
