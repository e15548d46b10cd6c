package client

import (
	"context"
	"net/url"

	"ferry/shared/wire"
)

// Link is a link to a file, as only the file's owner and its uploader see it.
type Link = wire.Link

// NewLinks describes links to be made.
type NewLinks = wire.NewLinks

// ChangeLink says what to change in a link. A nil field is left unchanged.
type ChangeLink = wire.ChangeLink

// ChangeFile says what to change in a file. A nil field is left unchanged.
type ChangeFile = wire.ChangeFile

// OwnLink is the id of a file's own link.
const OwnLink = "own"

func linkPath(id int64, link string) string {
	return filePath(id) + "/links/" + url.PathEscape(link)
}

// AddLinks sends a file of the user area to more people, each with a link of their own, or makes
// one more link. It does not retry, so that nobody gets two messages.
func (c *Client) AddLinks(ctx context.Context, id int64, l NewLinks) ([]Link, error) {
	var made struct{ Links []Link }
	r := request{method: "POST", path: filePath(id) + "/links", json: l}
	if err := c.once(ctx, r, &made); err != nil {
		return nil, err
	}
	if len(made.Links) == 0 {
		return nil, ErrAnswer
	}
	return made.Links, nil
}

// ChangeLink changes a link of a file, and returns the changed link. An unknown file or link is an
// ErrNotFound; a link that has ended is an *Error with status 409.
func (c *Client) ChangeLink(
	ctx context.Context,
	id int64,
	link string,
	change ChangeLink,
) (Link, error) {
	return result[Link](ctx, c, request{
		method: "PATCH",
		path:   linkPath(id, link),
		json:   change,
	})
}

// EndLink ends a link of a file at once. Repeating it is no error.
func (c *Client) EndLink(ctx context.Context, id int64, link string) (Link, error) {
	return result[Link](ctx, c, request{method: "DELETE", path: linkPath(id, link)})
}

// RenewLink ends a file's own link and makes a new one with the same limits.
func (c *Client) RenewLink(ctx context.Context, id int64) (Details, error) {
	return result[Details](ctx, c, request{
		method: "POST",
		path:   linkPath(id, OwnLink) + "/renew",
	})
}

// ChangeFile changes a file of the user area, and returns the changed file.
func (c *Client) ChangeFile(ctx context.Context, id int64, change ChangeFile) (Details, error) {
	return result[Details](ctx, c, request{method: "PATCH", path: filePath(id), json: change})
}
