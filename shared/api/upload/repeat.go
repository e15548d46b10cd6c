package upload

import (
	"context"
	"mime"
	"net/http"

	"ferry/shared/auth"
	"ferry/shared/files"
)

// claim takes the key that the request may have, and finds out what it has
// brought about before. What the body holds is compared by repeat: forms of the
// same files have other bytes, and another boundary, each time.
func (h uploadHandler) claim(r *http.Request, u auth.User) (*files.Claim, error) {
	key, err := files.ReadKey(r.Header)
	if err != nil || key == "" {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return h.keys.Claim(r.Context(), files.KeyRequest{
		User: u, Key: key, Lease: files.Lease(r.ContentLength),
		Fingerprint: files.Fingerprint(
			r.Method, r.URL.Path, r.URL.Query().Encode(), kind, r.Header.Get("Repr-Digest")),
	})
}

// repeat answers as commit did after the first request, if the body holds the
// same files.
func (h uploadHandler) repeat(ctx context.Context, in source, p params, u auth.User, result string) (files.Page, error) {
	again, err := h.files.Repeat(p.owner, result)
	if err != nil {
		return files.Page{}, err
	}
	if err := receive(ctx, again, in, p); err != nil {
		return files.Page{}, err
	}
	if p.owner == u.Name {
		return again.FilesAndList(ctx, u, files.PageSize)
	}
	stored, err := again.Files()
	return files.Page{Files: stored}, err
}
