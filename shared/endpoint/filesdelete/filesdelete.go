// Package filesdelete is DELETE /files/{id}: it moves a file of the caller to
// the backup area and answers with the file as it is there.
package filesdelete

import (
	"net/http"

	"ferry/shared/blob"
	"ferry/shared/endpoint"
	"ferry/shared/files"
	"ferry/shared/listing"
)

// Endpoint names the endpoint and its routes.
func Endpoint() endpoint.Endpoint {
	return endpoint.Endpoint{
		Name:   "filesdelete",
		Routes: []endpoint.Route{{Method: "DELETE", Path: "/files/{id}"}},
		New:    New,
	}
}

// New returns the handler. It needs the ports Table and Blobs and the link key.
func New(p *endpoint.Ports) http.Handler {
	check, service := p.Auth(), p.Files()
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		u, err := check.Request(r)
		if err != nil {
			return err
		}
		id, err := endpoint.FileID(r)
		if err != nil {
			return err
		}
		f, err := service.Delete(r.Context(), u, id)
		if err != nil {
			return err
		}
		return listing.Write(r.Context(), w, p, listing.Page{
			User: u.Name, Area: blob.Backup, Lang: endpoint.Lang(r, u), Page: files.Page{Files: []files.Listed{service.Listed(f)}},
		})
	})
}
