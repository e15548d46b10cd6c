package upload

import (
	"context"
	"mime"
	"net/http"

	"ferry/shared/files"
	"ferry/shared/idempotency"
	"ferry/shared/users"
)

// claim takes the key that the request may have, and finds out what it has
// brought about before. What the body holds is compared by repeat: forms of the
// same files have other bytes, and another boundary, each time.
func (h handler) claim(r *http.Request, u users.User) (*idempotency.Claim, error) {
	key, err := idempotency.Key(r.Header)
	if err != nil || key == "" {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return h.keys.Claim(r.Context(), idempotency.Request{
		User: u, Key: key, Lease: idempotency.Lease(r.ContentLength),
		Fingerprint: idempotency.Fingerprint(
			r.Method, r.URL.Path, r.URL.Query().Encode(), kind, r.Header.Get("Repr-Digest")),
	})
}

// repeat answers as commit did after the first request, if the body holds the
// same files.
func (h handler) repeat(ctx context.Context, in source, p params, u users.User, result string) (files.Page, error) {
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
