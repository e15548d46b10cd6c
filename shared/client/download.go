package client

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"ferry/shared/wire"
)

// Remote is a file as its link shows it before its bytes are fetched.
type Remote struct {
	Name   string // one path element, safe to use here
	Length int64  // bytes
	ETag   string
	SHA256 string // in hexadecimal; empty if not known
}

// Head tells what is behind a download link. It needs no login, and does not
// count as a download.
func (c *Client) Head(ctx context.Context, link string) (Remote, error) {
	var remote Remote
	err := c.retry.do(ctx, func() error {
		w := watch(ctx, c.idle)
		defer w.end()
		resp, err := c.getLink(w.ctx, http.MethodHead, link, nil)
		if err != nil {
			return err
		}
		defer drain(resp.Body)
		if resp.StatusCode != http.StatusOK {
			return refusal(resp)
		}
		if resp.ContentLength < 0 || resp.Header.Get("ETag") == "" || strings.HasPrefix(resp.Header.Get("ETag"), "W/") {
			return fmt.Errorf("%w: the link is not that of a file", ErrAnswer)
		}
		remote = Remote{
			Name: attachment(resp.Header), Length: resp.ContentLength,
			ETag: resp.Header.Get("ETag"), SHA256: reprDigest(resp.Header),
		}
		return nil
	})
	return remote, err
}

func (c *Client) getLink(ctx context.Context, method, link string, header http.Header) (*http.Response, error) {
	u, err := url.Parse(link)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("that is not a download link")
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, errors.New("that is not a download link")
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("Accept-Encoding", "identity")
	return c.send(req)
}

// attachment is the name that a download comes with.
func attachment(h http.Header) string {
	_, params, err := mime.ParseMediaType(h.Get("Content-Disposition"))
	if err != nil {
		return "download"
	}
	if name := wire.CleanFileName(params["filename"]); name != "" {
		return name
	}
	return "download"
}

// reprDigest is the SHA-256 of a Repr-Digest field (RFC 9530).
func reprDigest(h http.Header) string {
	for member := range strings.SplitSeq(h.Get("Repr-Digest"), ",") {
		value, ok := strings.CutPrefix(strings.TrimSpace(member), "sha-256=:")
		if !ok {
			continue
		}
		sum, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(value, ":"))
		if err == nil && len(sum) == 32 {
			return hex.EncodeToString(sum)
		}
	}
	return ""
}

// Verify says what a download is compared with, and hears how it goes on.
type Verify struct {
	// CRC64NVME is that of Details; empty if not known. The SHA-256 that
	// comes with a download is compared in any case.
	CRC64NVME string
	// Started is told what comes, and how much of it is there from before.
	Started func(r Remote, have int64)
	// Progress is told how many bytes more have come. It is called from several
	// goroutines.
	Progress func(delta int64)
}

func (v Verify) started(r Remote, have int64) {
	if v.Started != nil {
		v.Started(r, have)
	}
}

func (v Verify) progress(n int64) {
	if v.Progress != nil {
		v.Progress(n)
	}
}

// Copy writes the file behind a link to w, from its begin to its end, and then
// compares its digests: if it returns an ErrDigest, w has got wrong bytes.
func (c *Client) Copy(ctx context.Context, link string, w io.Writer, v Verify) (Remote, error) {
	remote, err := c.Head(ctx, link)
	if err != nil {
		return Remote{}, err
	}
	v.started(remote, 0)
	digests := newDigests(remote.SHA256, v.CRC64NVME)
	o := c.origin(link, remote)
	at := int64(0)
	err = c.retry.do(ctx, func() error {
		n, err := o.copy(ctx, span{at, remote.Length}, func(b []byte, _ int64) error {
			digests.write(b)
			_, err := w.Write(b)
			return err
		}, v.progress)
		at += n
		return err
	})
	if err != nil {
		return remote, err
	}
	return remote, digests.check()
}
