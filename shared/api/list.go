package api

import (
	"fmt"
	"net/http"
	"net/url"

	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/users"
)

// WriteList sends the envelope with a page of at most limit files of an area. If there are more, a
// Link header (RFC 8288) points to the next page.
func WriteList(
	w http.ResponseWriter, r *http.Request, p *Ports, u users.User, area blob.Area, page files.Page, limit int64,
) error {
	link := p.DownloadLink(r, u, area)
	shown := make([]envelope.File, len(page.Files))
	for i, f := range page.Files {
		shown[i] = Shown(f.File, link+f.Token)
	}
	if page.Next != 0 {
		path := map[blob.Area]string{
			blob.Files:  "/download/list",
			blob.Backup: "/download/list/backup",
		}[area]
		search := ""
		if page.Search != "" {
			search = "&search=" + url.QueryEscape(page.Search)
		}
		w.Header().Set(
			"Link",
			fmt.Sprintf(`<%s%s?lang=%s&limit=%d&after=%d%s>; rel="next"`,
				p.Base(r.Context()), path, param.Lang(r, u), limit, page.Next, search),
		)
	}
	return envelope.Write(w, p.Now(), envelope.Body{
		Description: envelope.List,
		User:        u.Name,
		Files:       shown,
	})
}

// Shown returns a file as an answer shows it, with a link.
func Shown(f files.File, link string) envelope.File {
	return envelope.File{
		ID:       f.ID,
		Name:     f.Name,
		Length:   f.Length,
		Modified: f.Modified,
		LinkURL:  link,
	}
}
