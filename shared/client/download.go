package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/minio/crc64nvme"

	"ferry/shared/wire"
)

// Remote is what a link says about its file before the bytes are fetched.
type Remote struct {
	Name      string // one path element, safe to use here; a leading dot is replaced
	Length    int64  // bytes
	ETag      string
	SHA256    string // in hexadecimal; empty if not known
	CRC64NVME string // in base64; empty if not known
}

// Head describes the file behind a link. It needs no login, and does not count as
// a download. For a link that needs a password the error is an ErrPassword.
func (c *Client) Head(ctx context.Context, link string) (remote Remote, err error) {
	err = c.askLink(ctx, http.MethodHead, link, http.Header{}, func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return refusal(resp)
		}
		tag := resp.Header.Get("ETag")
		if resp.ContentLength < 0 || tag == "" || strings.HasPrefix(tag, "W/") {
			return fmt.Errorf("%w: the link does not lead to a file", ErrAnswer)
		}
		_, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Disposition"))
		remote = Remote{
			Name:      localName(params["filename"]),
			Length:    resp.ContentLength,
			ETag:      tag,
			SHA256:    reprDigest(resp.Header),
			CRC64NVME: resp.Header.Get("X-Amz-Checksum-Crc64nvme"),
		}
		return nil
	})
	return remote, err
}

// localName makes a service's name for a file safe to use here: it never hides the file
// or configures a program, such as .bashrc, is never taken for a flag, such as -rf, and
// is never one that Windows reserves.
func localName(stated string) string {
	name := wire.CleanFileName(stated)
	if name != "" && strings.Contains(".-", name[:1]) {
		name = "_" + name[1:]
	} else if name != "" && !filepath.IsLocal(name) {
		name = "_" + name
	}
	if !filepath.IsLocal(name) { // empty, or with a colon on Windows
		return "download"
	}
	return name
}

// askLink sends a request to a link, with retries, and hands the answer to take.
func (c *Client) askLink(
	ctx context.Context, method, link string, header http.Header, take func(*http.Response) error,
) error {
	return c.retry.do(ctx, func() error {
		w := watch(ctx, idle)
		defer w.end()
		resp, err := c.getLink(w.ctx, method, link, header)
		if err != nil {
			return err
		}
		defer drain(resp.Body)
		return take(resp)
	})
}

func (c *Client) getLink(
	ctx context.Context,
	method, link string,
	header http.Header,
) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, link, nil)
	if err != nil || !isWeb(req.URL) {
		return nil, errors.New("not a download link")
	}
	req.Header = header
	req.Header.Set("Accept-Encoding", "identity")
	return c.send(req)
}

// reprDigest returns the SHA-256 in a Repr-Digest field (RFC 9530).
func reprDigest(h http.Header) string {
	for member := range strings.SplitSeq(h.Get("Repr-Digest"), ",") {
		value, ok := strings.CutPrefix(strings.TrimSpace(member), "sha-256=:")
		sum, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(value, ":"))
		if ok && err == nil && len(sum) == 32 {
			return hex.EncodeToString(sum)
		}
	}
	return ""
}

// Verify says what to compare a download with, how to report its progress, and what the link's
// password is.
type Verify struct {
	// CRC64NVME is the one in Details; empty if not known. It replaces the one that
	// comes with a download, whose digests are always compared.
	CRC64NVME string
	// Started gets the file to fetch, and how many of its bytes are already here.
	Started func(r Remote, have int64)
	// Progress gets the number of newly arrived bytes. It is called from several
	// goroutines.
	Progress func(delta int64)
	// Password returns the password of a link that needs one. After a wrong password it is called
	// again, with the error. If it returns an error itself, the download ends. If it is nil, such a
	// link is an ErrPassword.
	Password func(wrong error) (string, error)
	// Reopened is called when the claim of an earlier download can no longer be used, so that
	// resuming takes another download of a link with a limit.
	Reopened func()
}

// from returns the origin of the bytes behind a link.
func (v Verify) from(c *Client, link, claim string) *origin {
	v.Progress = given(v.Progress, func(int64) {})
	if v.Started == nil {
		v.Started = func(Remote, int64) {}
	}
	if v.Reopened == nil {
		v.Reopened = func() {}
	}
	o := &origin{
		client: c,
		link:   link,
		at:     cmp.Or(claim, link),
		verify: v,
		keep:   func(string) error { return nil },
	}
	o.tag.Store("")
	return o
}

// Copy writes the file behind a link to w, from beginning to end, and then compares
// its digests. If it returns an ErrDigest, w has received wrong bytes.
func (c *Client) Copy(ctx context.Context, link string, w io.Writer, v Verify) (Remote, error) {
	o := v.from(c, link, "")
	remote, err := o.head(ctx)
	if err != nil {
		return Remote{}, err
	}
	o.verify.Started(remote, 0)
	digests := newDigests(remote, v)
	both := io.MultiWriter(w, digests)
	err = o.copy(ctx, span{0, remote.Length}, func(b []byte) error {
		_, err := both.Write(b)
		return err
	})
	if err != nil {
		return remote, err
	}
	_, err = digests.check()
	return remote, err
}

// digest compares bytes with their known checksum.
type digest struct {
	hash.Hash
	name string
	want string
	text func(sum []byte) string
}

// digests holds all known digests of some bytes. A write goes to all of them.
type digests []digest

func newDigests(r Remote, v Verify) (all digests) {
	if r.SHA256 != "" {
		all = append(all, digest{sha256.New(), "sha-256", r.SHA256, hex.EncodeToString})
	}
	crc := cmp.Or(v.CRC64NVME, r.CRC64NVME)
	if _, err := wire.ParseCRC64(crc); err == nil {
		all = append(all, digest{
			crc64nvme.New(), "crc64nvme", crc, base64.StdEncoding.EncodeToString,
		})
	}
	return all
}

func (all digests) Write(b []byte) (int, error) {
	for _, d := range all {
		_, _ = d.Hash.Write(b) // never fails
	}
	return len(b), nil
}

// check returns the names of the digests, or an ErrDigest if the bytes written do
// not match.
func (all digests) check() (names []string, err error) {
	for _, d := range all {
		if got := d.text(d.Sum(nil)); got != d.want {
			return nil, fmt.Errorf("%w: their %s is %s, not %s",
				ErrDigest, strings.ToUpper(d.name), got, d.want)
		}
		names = append(names, d.name)
	}
	return names, nil
}

// read reads all of r and checks it. Without a digest it reads nothing.
func (all digests) read(ctx context.Context, r io.Reader) (names []string, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	if _, err := io.Copy(all, ending{ctx, r}); err != nil {
		return nil, cause(ctx, fmt.Errorf("reading the received bytes: %w", err))
	}
	return all.check()
}
