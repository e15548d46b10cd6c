// Package file has the endpoints for stored files: download, list, delete, restore, and show
// what is known about one. Start reading with download.go; wanted.go has what a request can want.
package file

import (
	"math"
	"net/http"
	"unicode/utf8"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/table"
	"ferry/shared/users"
)

// Download is GET /download/file (specification section 4.4).
func Download() api.Endpoint { return api.Named("downloadfile", newDownload(blob.Files, "k")) }

// DownloadBackup is GET /download/file/backup (specification section 4.5).
func DownloadBackup() api.Endpoint {
	return api.Named("downloadfilebackup", newDownload(blob.Backup, "z"))
}

// List is GET /download/list: it lists the caller's user area.
func List() api.Endpoint { return api.Named("downloadlist", newList(blob.Files)) }

// ListBackup is GET /download/list/backup: it lists the caller's backup area.
func ListBackup() api.Endpoint { return api.Named("downloadlistbackup", newList(blob.Backup)) }

// Delete is DELETE /files/{id}: it moves one of the caller's files to the backup area and
// answers with the file there. With area=backup it removes a file from the backup area
// for good.
func Delete() api.Endpoint { return api.Named("filesdelete", newMove(remove)) }

func remove(s *files.Service, r *http.Request, u users.User, id int64) (*files.Listed, error) {
	area, err := areaOf(r)
	switch {
	case err != nil:
		return nil, err
	case area == blob.Backup:
		return nil, s.Purge(r.Context(), u, id)
	}
	return s.Delete(r.Context(), u, id)
}

// Restore is POST /files/{id}/restore: it moves one of the caller's files back from the
// backup area and answers with the restored file.
func Restore() api.Endpoint { return api.Named("filesrestore", newMove(restore)) }

func restore(s *files.Service, r *http.Request, u users.User, id int64) (*files.Listed, error) {
	return s.Restore(r.Context(), u, id)
}

// newMove returns the handler, which answers with the file that move returns or, if it is gone for
// good, with an empty list. It needs the ports Table and Mover and the link key, and Blobs to purge
// a file.
func newMove(
	move func(*files.Service, *http.Request, users.User, int64) (*files.Listed, error),
) func(*api.Ports) http.Handler {
	return func(p *api.Ports) http.Handler {
		service := p.Files()
		return p.Authenticated(func(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
			id, err := param.FileID(r)
			if err != nil {
				return err
			}
			area, page := blob.Backup, files.Page{}
			moved, err := move(service, r, u.User, id)
			if err != nil {
				return err
			}
			if moved != nil {
				area, page.Files = moved.Area, append(page.Files, moved)
			}
			return api.WriteList(w, r, p, u.User, area, page, 0)
		})
	}
}

// defaultLimit is how many files a list has if the caller gives no limit.
const defaultLimit = 1000

// newList returns the handler that lists an area of the caller. A request costs one call
// to the table for authentication and one for the page.
func newList(area blob.Area) func(*api.Ports) http.Handler {
	return func(p *api.Ports) http.Handler {
		service := p.Files()
		return p.Authenticated(func(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
			q, err := param.Query(r)
			if err == nil { // a misspelt search would find everything
				err = param.Misspelt(q, "search", "limit", "after", "lang")
			}
			if err != nil {
				return err
			}
			limit, err := param.Number(r, "limit", 1, table.MaxPage, defaultLimit)
			if err != nil {
				return err
			}
			after, err := param.Number(r, "after", 1, math.MaxInt64, 0)
			if err != nil {
				return err
			}
			text := q.Get("search")
			if len(text) > maxSearch || !utf8.ValidString(text) {
				return fault.Parameter(
					"search", "the query parameter search must have at most %d bytes of UTF-8", maxSearch,
				)
			}
			page, err := service.Search(r.Context(), u.User, area, text, after, int(limit))
			if err != nil {
				return err
			}
			return api.WriteList(w, r, p, u.User, area, page, limit)
		})
	}
}

// maxSearch is the longest text to search for in names, in bytes. It is as long as a name can be.
const maxSearch = 255
