package file

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/files"
)

// Restore is POST /files/{id}/restore: it brings a file of the caller back from
// the backup area and answers with the file as it is then.
func Restore() api.Endpoint { return api.Named("filesrestore", newRestore) }

// newRestore returns the handler. It needs the ports Table and Blobs and the link key.
func newRestore(p *api.Ports) http.Handler {
	check, service := auth.New(p.Ports), Service(p)
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		u, err := check.Request(r)
		if err != nil {
			return err
		}
		id, err := api.FileID(r)
		if err != nil {
			return err
		}
		f, err := service.Restore(r.Context(), u, id)
		if err != nil {
			return err
		}
		return WriteList(r.Context(), w, p, ListPage{
			User: u.Name, Area: blob.Files, Lang: api.Lang(r, u), Page: files.Page{Files: []files.Listed{service.Listed(f)}},
		})
	})
}
