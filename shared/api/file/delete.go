// Package filesdelete is DELETE /files/{id}: it moves a file of the caller to
// the backup area and answers with the file as it is there.

package file

import (
	"net/http"

	"ferry/shared/blob"
	"ferry/shared/files"

	"ferry/shared/api"
)

// Endpoint names the endpoint and its routes.
func Delete() api.Endpoint {
	return api.Endpoint{
		Name:   "filesdelete",
		Routes: []api.Route{{Method: "DELETE", Path: "/files/{id}"}},
		New:    NewDelete,
	}
}

// New returns the handler. It needs the ports Table and Blobs and the link key.
func NewDelete(p *api.Ports) http.Handler {
	check, service := p.Auth(), p.Files()
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		u, err := check.Request(r)
		if err != nil {
			return err
		}
		id, err := api.FileID(r)
		if err != nil {
			return err
		}
		f, err := service.Delete(r.Context(), u, id)
		if err != nil {
			return err
		}
		return WriteList(r.Context(), w, p, ListPage{
			User: u.Name, Area: blob.Backup, Lang: api.Lang(r, u), Page: files.Page{Files: []files.Listed{service.Listed(f)}},
		})
	})
}
