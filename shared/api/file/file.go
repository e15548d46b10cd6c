// Package file has the endpoints for stored files: download, list, delete, restore, and show
// what is known about one. Start reading with download.go.
package file

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"unicode/utf8"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// Service returns the domain of files on these ports.
func Service(p *api.Ports) *files.Service {
	return api.Domain(p, func(p *api.Ports) *files.Service {
		return files.New(files.Config{
			Ports: p.Ports, Blobs: p.Blobs, Parts: p.Parts, Outbox: Outbox(p), Links: Links(p),
			Retention: p.Retention, Free: p.Free, Shared: p.CountWait > 0, Log: p.Log, Mover: p.Mover,
		})
	})
}

// Links returns the domain of links on these ports.
func Links(p *api.Ports) *links.Service {
	return api.Domain(p, func(p *api.Ports) *links.Service {
		return links.New(links.Config{
			Ports: p.Ports, Outbox: Outbox(p), Queued: func() { p.Notify() }, Log: p.Log,
			Bytes: p.LinkBytes, CountWait: p.CountWait, Memory: p.LinkMemory,
		})
	})
}

// Outbox returns the outbox for notices about files.
func Outbox(p *api.Ports) notify.Outbox {
	return notify.NewOutbox(p.Ports, p.Notices, p.PublicURL, p.Events)
}

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

func remove(s *files.Service, r *http.Request, u auth.User, id int64) (*files.Listed, error) {
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

func restore(s *files.Service, r *http.Request, u auth.User, id int64) (*files.Listed, error) {
	return s.Restore(r.Context(), u, id)
}

// newMove returns the handler, which answers with the file that move returns or, if it is gone
// for good, with an empty list. It needs the ports Table and Mover and the link key, and to purge
// Blobs.
func newMove(
	move func(*files.Service, *http.Request, auth.User, int64) (*files.Listed, error),
) func(*api.Ports) http.Handler {
	return func(p *api.Ports) http.Handler {
		service := Service(p)
		return p.Authenticated(func(w http.ResponseWriter, r *http.Request, u auth.Identity) error {
			id, err := api.FileID(r)
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
			return WriteList(w, r, p, u.User, area, page, 0)
		})
	}
}

// defaultLimit is how many files a list has if the caller gives no limit.
const defaultLimit = 1000

// newList returns the handler that lists an area of the caller. A request costs one call
// to the table for authentication and one for the page.
func newList(area blob.Area) func(*api.Ports) http.Handler {
	return func(p *api.Ports) http.Handler {
		service := Service(p)
		return p.Authenticated(func(w http.ResponseWriter, r *http.Request, u auth.Identity) error {
			q, err := api.Query(r)
			if err == nil { // a misspelt search would find everything
				err = api.Misspelt(q, "search", "limit", "after", "lang")
			}
			if err != nil {
				return err
			}
			limit, err := api.Number(r, "limit", 1, table.MaxPage, defaultLimit)
			if err != nil {
				return err
			}
			after, err := api.Number(r, "after", 1, math.MaxInt64, 0)
			if err != nil {
				return err
			}
			text := q.Get("search")
			if len(text) > maxSearch || !utf8.ValidString(text) {
				return fault.Parameter("search", "the query parameter search has at most %d bytes of UTF-8", maxSearch)
			}
			page, err := service.Search(r.Context(), u.User, area, text, after, int(limit))
			if err != nil {
				return err
			}
			return WriteList(w, r, p, u.User, area, page, limit)
		})
	}
}

// maxSearch is the longest text that names are searched for, in bytes, as is a name.
const maxSearch = 255

// WriteList sends the envelope with a page of an area, of at most limit files. If there
// are more, a Link header (RFC 8288) leads to the next page.
func WriteList(
	w http.ResponseWriter, r *http.Request, p *api.Ports, u auth.User, area blob.Area, page files.Page, limit int64,
) error {
	base, lang := p.Base(r.Context()), api.Lang(r, u)
	link := auth.DownloadLink(base, lang, area)
	shown := make([]envelope.File, len(page.Files))
	for i, f := range page.Files {
		shown[i] = shownFile(f.File, link+f.Token)
	}
	if page.Next != 0 {
		path := "/download/list"
		if area == blob.Backup {
			path += "/backup"
		}
		search := ""
		if page.Search != "" {
			search = "&search=" + url.QueryEscape(page.Search)
		}
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?lang=%s&limit=%d&after=%d%s>; rel="next"`, base, path, lang, limit, page.Next, search))
	}
	return envelope.Write(w, p.Now(), envelope.Success{Description: envelope.List, User: u.Name, Files: shown})
}

func shownFile(f files.File, link string) envelope.File {
	return envelope.File{ID: f.ID, Name: f.Name, Length: f.Length, Modified: f.Modified, LinkURL: link}
}
