package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"ferry/shared/bundle"
	"ferry/shared/wire"
)

// Bundle returns the source of a bundle: files and folders in one archive, which is made while it
// is sent. open opens the file of an entry, by its index in the layout; several goroutines call it
// at once. If a file changes, the error names it, and wraps ErrChanged.
func Bundle(name string, l *bundle.Layout, open func(entry int) (bundle.File, error)) Source {
	s := Source{
		Name:   name,
		Type:   "application/zip",
		Length: l.Length,
		parts: func(size int64) parts {
			return bundle.NewParts(l, size, open)
		},
	}
	for _, e := range l.Entries {
		if !e.IsFolder() {
			s.files++
		}
	}
	return s
}

// changedFile is an error that says which file of a bundle has changed.
type changedFile struct{ error }

func (c changedFile) Unwrap() error        { return c.error }
func (c changedFile) Is(target error) bool { return target == ErrChanged }

// changed makes an error about a changed file of a bundle an ErrChanged too.
func changed(err error) error {
	if errors.Is(err, bundle.ErrChanged) {
		return changedFile{err}
	}
	return err
}

// About is what a link says about its file to everybody who has the link.
type About = wire.About

// About asks a link what it leads to. It needs no login and no password, and does not count as a
// download. path is where an earlier download may have left its claim, as in FetchOptions. With
// that claim, About works even for a link that is used up by now.
func (c *Client) About(ctx context.Context, link, path string) (a About, err error) {
	if claim := earlierClaim(cmp.Or(path, "."), link); claim != "" {
		if a, err = c.about(ctx, claim); !hasStatus(err, 401) {
			return a, err
		}
	}
	return c.about(ctx, link)
}

func (c *Client) about(ctx context.Context, link string) (a About, err error) {
	at, err := url.Parse(link)
	if err != nil {
		return a, errors.New("not a download link")
	}
	at.RawQuery, at.Fragment = at.RawQuery+"&about", ""
	err = c.askLink(ctx, http.MethodGet, at.String(), http.Header{}, func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return refusal(resp)
		}
		return decode(resp, &a)
	})
	return a, err
}
