package file

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/table"
)

// defaultLimit is how many files a list has unless the caller says otherwise.
const defaultLimit = 1000

// newList returns the handler that lists an area of the caller. It costs one call
// to the table for authentication and one for the page.
func newList(p *api.Ports, area blob.Area) http.Handler {
	service := Service(p)
	return p.Authenticated(func(w http.ResponseWriter, r *http.Request, u auth.User) error {
		q, err := api.Query(r)
		if err != nil {
			return err
		}
		limit, err := api.Number(q, "limit", 1, table.MaxPage, defaultLimit)
		if err != nil {
			return err
		}
		after, err := api.Number(q, "after", 1, math.MaxInt64, 0)
		if err != nil {
			return err
		}
		page, err := service.List(r.Context(), u, area, after, int(limit))
		if err != nil {
			return err
		}
		return WriteList(r.Context(), w, p, ListPage{u.Name, area, api.Lang(r, u), page, int(limit)})
	})
}

// ListPage is what WriteList shows.
type ListPage struct {
	User  string
	Area  blob.Area
	Lang  string
	Page  files.Page
	Limit int
}

// WriteList sends the envelope with the page's files. That there are more is told
// by a Link header (RFC 8288).
func WriteList(ctx context.Context, w http.ResponseWriter, p *api.Ports, l ListPage) error {
	base := p.Base(ctx)
	link := auth.DownloadLink(base, l.Lang, l.Area)
	records := make([]envelope.File, len(l.Page.Files))
	for i, f := range l.Page.Files {
		records[i] = f.Record(link)
	}
	if l.Page.Next != 0 {
		path := "/download/list"
		if l.Area == blob.Backup {
			path += "/backup"
		}
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?lang=%s&limit=%d&after=%d>; rel="next"`, base, path, l.Lang, l.Limit, l.Page.Next))
	}
	return envelope.Write(w, p.Now(), envelope.Success{Description: envelope.List, User: l.User, Files: records})
}
