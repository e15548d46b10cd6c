package client_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/client"
)

const linkPassword = "open: sesame é"

// shared is a file behind a link with limits.
type shared struct {
	*testing.T
	owner   *client.Client
	file    client.File
	content []byte
}

// share stores a file of n bytes.
func share(t *testing.T, owner *client.Client, n int, d client.Delivery) shared {
	t.Helper()
	content := bytesOf(9, n)
	src := client.Source{Name: "big", Length: int64(n), Content: bytes.NewReader(content)}
	f, err := owner.Put(t.Context(), src, client.PutOptions{Delivery: d})
	must(t, err)
	return shared{t, owner, f, content}
}

// left returns how many downloads the file's own link still allows.
func (s shared) left() int64 {
	s.Helper()
	d, err := s.owner.File(s.Context(), client.UserArea, s.file.ID)
	must(s.T, err)
	return *d.Links[0].Left
}

// wantBytes checks what was downloaded to a folder.
func (s shared) wantBytes(dir string) {
	s.Helper()
	if got, err := os.ReadFile(filepath.Join(dir, "big")); err != nil || !bytes.Equal(got, s.content) {
		s.Errorf("%d of %d bytes: %v", len(got), len(s.content), err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		s.Errorf("the folder holds more than the file: %v", files)
	}
}

// typed returns the answers of a person to questions for a password, wrong ones first.
func typed(wrong ...string) func(error) (string, error) {
	answers := append(wrong, linkPassword)
	return func(error) (string, error) {
		if len(answers) == 0 {
			return "", errors.New("asked too often")
		}
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	}
}

// behindStore returns an address at which the service redirects downloads to a store, as in the
// cloud, and the number of requests that the store gets.
func behindStore(t *testing.T, s *apitest.Server, content []byte) (root string, requests *atomic.Int64) {
	requests = &atomic.Int64{}
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.URL.RawQuery != "signed" ||
			r.Header.Get("Authorization")+r.Header.Get("Ferry-Link-Password")+r.Header.Get("Referer") != "" {
			t.Errorf("the store gets %s with %v", r.URL, r.Header)
		}
		w.Header().Set("ETag", `"store"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(store.Close)
	to, _ := url.Parse(s.Root)
	given := func(r *http.Request) bool { return r.Method == "GET" && r.URL.Query().Has("claim") }
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if r.SetURL(to); given(r.In) {
				r.Out.Header.Set("Range", "bytes=0-0")
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if given(r.Request) && r.StatusCode < 300 {
				_ = r.Body.Close()
				r.StatusCode, r.Header, r.Body, r.ContentLength = 302, http.Header{"Location": {store.URL +
					"/big?signed"}}, http.NoBody, 0
			}
			return nil
		},
	})
	t.Cleanup(proxy.Close)
	return proxy.URL, requests
}

func TestADownloadTakesOneOfALimitedLink(t *testing.T) {
	t.Parallel()
	s, owner := start(t)
	for what, k := range map[string]struct {
		size     int
		store    bool
		password string
	}{
		"small":                           {size: 100},
		"large":                           {size: 20 << 20},
		"large, in parallel from a store": {size: 70 << 20, store: true},
		"protected":                       {size: 100, password: linkPassword},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := share(t, owner, k.size, client.Delivery{Limits: client.Limits{Downloads: 1, Password: k.password}})
			link, requests := f.file.Link, &atomic.Int64{}
			if k.store {
				var root string
				root, requests = behindStore(t, s, f.content)
				link = strings.Replace(link, s.Root, root, 1)
			}
			dir := t.TempDir()
			o := client.FetchOptions{Path: dir, Connections: 4, Verify: client.Verify{Password: typed()}}
			_, err := newClient(t, client.Options{URL: s.Base, Retry: quick()}).Fetch(t.Context(), link, o)
			must(t, err)
			if f.wantBytes(dir); f.left() != 0 || k.store != (requests.Load() > 0) {
				t.Errorf("%d downloads are left; the store got %d requests", f.left(), requests.Load())
			}
			if _, err := owner.Copy(t.Context(), link, io.Discard, client.Verify{}); client.StatusOf(err) != 401 ||
				!strings.Contains(err.Error(), "used up") {
				t.Errorf("one more download: %v", err)
			}
		})
	}
}

func TestAStreamTakesOneDownloadThoughItIsCut(t *testing.T) {
	t.Parallel()
	s, owner := start(t)
	f := share(t, owner, 3<<20, client.Delivery{Limits: client.Limits{Downloads: 1, Password: linkPassword}})
	cut := cutter(1<<20, 20)
	c := newClient(t, client.Options{URL: s.Base, HTTP: cut.client(), Retry: quick()})
	var got bytes.Buffer
	_, err := c.Copy(t.Context(), f.file.Link, &got, client.Verify{Password: typed()})
	if err != nil || !bytes.Equal(got.Bytes(), f.content) || cut.cuts < 2 || f.left() != 0 {
		t.Errorf("%d bytes after %d cuts, %d downloads left: %v", got.Len(), cut.cuts, f.left(), err)
	}
}

// interrupted begins a download that fails after a part of the file.
func (s shared) interrupted(base, dir string) {
	s.Helper()
	weak := newClient(s.T, client.Options{URL: base, HTTP: cutter(1<<20, 1000).client(), Retry: client.Retry{Tries: 1}})
	for range 100 {
		_, err := weak.Fetch(s.Context(), s.file.Link, client.FetchOptions{
			Path:   dir,
			Verify: client.Verify{Password: typed()},
		})
		if parts, _ := filepath.Glob(filepath.Join(dir, "*.part")); err == nil || len(parts) > 0 && s.left() == 0 {
			return
		}
	}
	s.Fatal("no download was begun")
}

func TestAnInterruptedDownloadGoesOnForNothing(t *testing.T) {
	t.Parallel()
	s, owner := start(t)
	f := share(t, owner, 8<<20, client.Delivery{Limits: client.Limits{Downloads: 1, Password: linkPassword}})
	dir := t.TempDir()
	f.interrupted(s.Base, dir)
	if left, _ := filepath.Glob(filepath.Join(dir, "*.part.json")); len(left) != 1 {
		t.Fatalf("there is nothing to resume: %v", left)
	}
	s.Clock.Advance(2 * time.Hour)
	o := client.FetchOptions{Path: dir, Verify: client.Verify{Reopened: func() { t.Error("it opens the link again") }}}
	have := int64(0)
	o.Started = func(_ client.Remote, n int64) { have = n }
	_, err := owner.Fetch(t.Context(), f.file.Link, o)
	must(t, err)
	if f.wantBytes(dir); have == 0 {
		t.Error("it fetches everything again")
	}
}

func TestADownloadThatWaitedTooLongTakesAnother(t *testing.T) {
	t.Parallel()
	s, owner := start(t)
	f := share(t, owner, 8<<20, client.Delivery{Limits: client.Limits{Downloads: 1}})
	dir, told := t.TempDir(), 0
	f.interrupted(s.Base, dir)
	s.Clock.Advance(25 * time.Hour)
	o := client.FetchOptions{Path: dir, Verify: client.Verify{Reopened: func() { told++ }}}
	if _, err := owner.Fetch(t.Context(), f.file.Link, o); client.StatusOf(err) != 401 ||
		!strings.Contains(err.Error(), "used up") ||
		told != 0 {
		t.Errorf("told %d times: %v", told, err)
	}
	more := int64(2)
	_, err := owner.ChangeLink(t.Context(), f.file.ID, client.OwnLink, client.ChangeLink{Downloads: &more})
	must(t, err)
	_, err = owner.Fetch(t.Context(), f.file.Link, o)
	must(t, err)
	if f.wantBytes(dir); told != 1 || f.left() != 0 {
		t.Errorf("told %d times, %d downloads left", told, f.left())
	}
}

// TestAClaimThatEndsMeanwhileIsRenewed changes the password while a download is under way, which
// ends all claims.
func TestAClaimThatEndsMeanwhileIsRenewed(t *testing.T) {
	t.Parallel()
	_, owner := start(t)
	f := share(t, owner, 40<<20, client.Delivery{Limits: client.Limits{Password: "another"}})
	dir, asked := t.TempDir(), 0
	changed := false
	v := client.Verify{
		Password: func(error) (string, error) {
			if asked++; asked == 1 {
				return "another", nil
			}
			return linkPassword, nil
		},
		Started: func(client.Remote, int64) {
			password := linkPassword
			_, err := owner.ChangeLink(t.Context(), f.file.ID, client.OwnLink, client.ChangeLink{Password: &password})
			must(t, err)
			changed = true
		},
	}
	_, err := owner.Fetch(t.Context(), f.file.Link, client.FetchOptions{Path: dir, Verify: v})
	must(t, err)
	if f.wantBytes(dir); asked != 2 || !changed {
		t.Errorf("asked %d times", asked)
	}
}

func TestAPasswordIsAskedUntilItIsRight(t *testing.T) {
	t.Parallel()
	_, owner := start(t)
	f := share(t, owner, 100, client.Delivery{Limits: client.Limits{Password: linkPassword}})
	expect.Err(t, "the file behind it", failed(owner.Head(t.Context(), f.file.Link)), client.ErrPassword)
	expect.Err(
		t,
		"without a password",
		failed(owner.Copy(t.Context(), f.file.Link, io.Discard, client.Verify{})),
		client.ErrPassword,
	)
	dir := t.TempDir()
	o := client.FetchOptions{Path: dir, Verify: client.Verify{Password: typed("wrong", "also wrong")}}
	must(t, failed(owner.Fetch(t.Context(), f.file.Link, o)))
	f.wantBytes(dir)
	var seen error
	o.Password = func(wrong error) (string, error) {
		if seen = wrong; wrong != nil {
			return "", io.EOF
		}
		return "wrong", nil
	}
	if _, err := owner.Fetch(t.Context(), f.file.Link, o); !errors.Is(err, io.EOF) ||
		!errors.Is(seen, client.ErrPassword) {
		t.Errorf("a wrong password is %v, the download %v", seen, err)
	}
}
