// Package all lists the endpoints, for the one-process server and the tests of
// the whole. No Lambda imports it.

package api

import (
	"net/http"

	"ferry/shared/api/account"
	"ferry/shared/api/endpoint"
	"ferry/shared/api/file"
	"ferry/shared/api/upload"
	"ferry/shared/openapi"
)

// Endpoints returns every endpoint, the fallback included.
func Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		account.Change(),
		account.First(),
		account.Forget(),
		account.Login(),
		file.Download(),
		file.DownloadBackup(),
		file.List(),
		file.ListBackup(),
		file.Delete(),
		file.Get(),
		file.Restore(),
		endpoint.Health(),
		openapi.NotFound(),
		account.Stop(),
		account.Revoke(),
		account.Token(),
		openapi.Endpoint(),
		upload.Upload(),
		upload.Sessions(),
	}
}

// Handler returns all endpoints as one handler.
func Handler(p *endpoint.Ports) *http.ServeMux {
	mux, fallback := http.NewServeMux(), openapi.NewNotFound(p)
	for _, e := range Endpoints() {
		e.Mount(mux, p, fallback)
	}
	mux.Handle("/", fallback)
	return mux
}
