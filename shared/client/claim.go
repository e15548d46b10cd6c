package client

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// A link with a limit or a password gives its bytes only for a claim: it redirects to
// LINK&claim=NONCE. The first GET there takes one of its downloads, and all further ones are free.
// So a download keeps the claim's address as its link, and is resumed with it.

// claimed returns the address of the claim that an answer redirects to, or "". It is the link
// itself with the claim added, so that nothing goes to another host.
func claimed(link string, resp *http.Response) string {
	to, err := resp.Location()
	if err != nil || resp.StatusCode/100 != 3 {
		return ""
	}
	return withClaim(link, to)
}

// withClaim adds to a link the claim in another address of the same link. It returns "" if there is
// none.
func withClaim(link string, to *url.URL) string {
	from, err := url.Parse(link)
	if err != nil {
		return ""
	}
	asked, got := from.Query(), to.Query()
	// What a chat has added to the token is not in the service's answer.
	same := strings.HasPrefix(asked.Get("k"), got.Get("k")) &&
		strings.HasPrefix(asked.Get("z"), got.Get("z")) &&
		got.Get("k")+got.Get("z") != ""
	if !same || asked.Has("claim") || got.Get("claim") == "" {
		return ""
	}
	from.RawQuery, from.Fragment = from.RawQuery+"&claim="+url.QueryEscape(got.Get("claim")), ""
	return from.String()
}

// claim asks a link for a claim and returns its address. If the link no longer needs a claim, the
// address is the link itself.
func (c *Client) claim(ctx context.Context, link, password string) (address string, err error) {
	header := http.Header{"Range": {"bytes=0-0"}}
	if password != "" { // unlike other headers, this one is defined for more than ASCII
		header.Set(
			"Authorization",
			"Basic "+base64.StdEncoding.EncodeToString([]byte(":"+password)),
		)
	}
	err = c.askLink(ctx, http.MethodGet, link, header, func(resp *http.Response) error {
		address = claimed(link, resp)
		if address != "" {
			return nil
		}
		address = link
		if resp.StatusCode >= 400 {
			return refusal(resp)
		}
		return nil
	})
	return address, err
}

// unlock returns the address of a claim. If err, or else the link, says that a password is needed,
// unlock gets it from ask.
func (c *Client) unlock(
	ctx context.Context, link string, err error, ask func(wrong error) (string, error),
) (address string, _ error) {
	if err == nil {
		address, err = c.claim(ctx, link, "")
	}
	err = withPassword(err, ask, func(password string) (err error) {
		address, err = c.claim(ctx, link, password)
		return err
	})
	return address, err
}

// earlierClaim returns the address of the claim that an unfinished download of a link has left in
// a folder, or beside a file, or "".
func earlierClaim(path, link string) string {
	folder, names := filepath.Dir(path), []string{beginning(filepath.Base(path)) + ".part.json"}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		folder, names = path, nil
		entries, _ := os.ReadDir(path)
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".part.json") {
				names = append(names, e.Name())
			}
		}
	}
	for _, name := range names {
		r, _ := readRecord(filepath.Join(folder, name))
		if at, err := url.Parse(r.Claim); err == nil &&
			r.Claim != "" &&
			withClaim(link, at) == r.Claim {
			return r.Claim
		}
	}
	return ""
}
