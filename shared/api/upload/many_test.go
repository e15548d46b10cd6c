package upload_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
)

func TestThousandConcurrentUploadsLoseNone(t *testing.T) {
	t.Parallel()
	all, workers := 1000, 50
	c := begin(t)
	if c.InStack() { // the emulator is a single Python process
		all, workers = 100, 10
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers}}
	defer client.CloseIdleConnections()
	todo := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for n := range todo {
				if err := c.uploadNumber(client, n); err != nil {
					t.Errorf("upload %d: %v", n, err)
				}
			}
		})
	}
	for n := range all {
		todo <- n
	}
	close(todo)
	wg.Wait()

	listed := c.Decode(c.Request("GET", "/download/list?limit=1000", nil, "Authorization", "Bearer "+c.bearer), 200).Files
	names := map[string]bool{}
	for i, f := range listed {
		if f.ID != int64(all-i) {
			t.Fatalf("place %d has the id %d", i, f.ID)
		}
		names[f.Name] = true
	}
	if len(names) != all || len(c.Objects(blob.Files)) != all {
		t.Fatalf("there are %d names and %d objects", len(names), len(c.Objects(blob.Files)))
	}
	for _, f := range listed[:20] {
		if got := c.get(f.LinkURL); got != f.Name {
			t.Errorf("%s has the content of %s", f.Name, got)
		}
	}
}

// uploadNumber uploads a file whose content is its name.
func (c caller) uploadNumber(client *http.Client, n int) error {
	name := fmt.Sprint("file-", n)
	r, err := http.NewRequestWithContext(c.Context(), "POST", c.Base+"/upload?file="+name, strings.NewReader(name))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.bearer)
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != 200 || !strings.Contains(string(body), `"name":"`+name+`"`)) {
		err = fmt.Errorf("status %d without the file", resp.StatusCode)
	}
	return err
}

func TestRestartNeverReusesAnID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := beginIn(t, dir)
	auth := []string{"Authorization", "Bearer " + c.bearer}
	for range 3 {
		c.Put(c.bearer, "file=x", "1")
	}
	c.Decode(c.Request("DELETE", "/files/3", nil, auth...), 200) // this frees no id
	c.Clock.Advance(100 * 24 * time.Hour)
	c.Service.Sweep(t.Context())
	c.Clock.Advance(100 * 24 * time.Hour)
	c.Service.Sweep(t.Context()) // nor does the file's final removal
	for id := int64(4); id < 7; id++ {
		c.Close()
		c = beginIn(t, dir)
		if e := c.Put(c.bearer, "file=x", "1"); e.Files[0].ID != id {
			t.Errorf("after a restart the id is %d, want %d", e.Files[0].ID, id)
		}
	}
}

// walk follows the next links from a response to the last page.
func (c caller) walk(resp *http.Response) (pages int, files []apitest.File) {
	c.Helper()
	next := regexp.MustCompile(`^<(.*)>; rel="next"$`)
	for {
		pages++
		files = append(files, c.Decode(resp, 200).Files...)
		link := resp.Header.Get("Link")
		if link == "" {
			return pages, files
		}
		m := next.FindStringSubmatch(link)
		if m == nil || !strings.HasPrefix(m[1], c.Base+"/") {
			c.Fatalf("the Link header is %q", link)
		}
		resp = c.Request("GET", strings.TrimPrefix(m[1], c.Base), nil, "Authorization", "Bearer "+c.bearer)
	}
}

func TestNextLinksReachEveryFile(t *testing.T) {
	t.Parallel()
	const all = 205
	c := begin(t)
	client := c.Client()
	var wg sync.WaitGroup
	for w := range 10 {
		wg.Go(func() {
			for n := w; n < all-1; n += 10 {
				if err := c.uploadNumber(client, n); err != nil {
					t.Errorf("upload %d: %v", n, err)
				}
			}
		})
	}
	wg.Wait()
	auth := []string{"Authorization", "Bearer " + c.bearer}
	stored := c.post("file=last", "", strings.NewReader("1"))
	check := func(what string, resp *http.Response, wantPages int) {
		t.Helper()
		pages, found := c.walk(resp)
		if pages != wantPages || len(found) != all {
			t.Errorf("%s: %d files on %d pages, want %d on %d", what, len(found), pages, all, wantPages)
			return
		}
		for i, f := range found {
			if f.ID != int64(all-i) {
				t.Fatalf("%s: place %d has the id %d", what, i, f.ID)
			}
		}
	}
	check("from an upload", stored, 3)
	for limit, pages := range map[string]int{"": 1, "limit=205": 1, "limit=204": 2} {
		check("a list with "+limit, c.Request("GET", "/download/list?"+limit, nil, auth...), pages)
	}
	for n := 1; n <= 5; n++ {
		c.Decode(c.Request("DELETE", fmt.Sprint("/files/", n), nil, auth...), 200)
	}
	if pages, found := c.walk(c.Request("GET", "/download/list/backup?limit=2", nil, auth...)); pages != 3 || len(found) != 5 || found[0].ID != 5 || found[4].ID != 1 {
		t.Errorf("the backup area has %d pages with %+v", pages, found)
	}
	if _, found := c.walk(c.Request("GET", "/download/list?limit=100", nil, auth...)); len(found) != all-5 {
		t.Errorf("after deleting 5 there are %d files", len(found))
	}
}

func TestInvalidPageParametersAreRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	auth := []string{"Authorization", "Bearer " + c.bearer}
	for _, path := range []string{"/download/list", "/download/list/backup"} {
		for _, query := range []string{"limit=0", "limit=-1", "limit=1001", "limit=x", "limit=1.5", "limit=99999999999999999999", "limit=", "after=", "after=0", "after=-1", "after=x", "after=99999999999999999999", "%zz"} {
			if c.InStack() && query == "%zz" {
				continue // the gateway parses queries
			}
			c.wantStatus(path+"?"+query, c.Request("GET", path+"?"+query, nil, auth...), 400)
		}
		for _, query := range []string{"limit=1", "limit=1000", "after=1", "after=9223372036854775807"} {
			if e := c.Decode(c.Request("GET", path+"?"+query, nil, auth...), 200); e.Files == nil || len(e.Files) > 0 {
				t.Errorf("%s?%s: the list of an empty area is %v", path, query, e.Files)
			}
		}
		c.wantStatus(path+" without a credential", c.Request("GET", path, nil), 401)
		if e := c.Decode(c.Request("GET", path, nil, "Authorization", apitest.Basic(c.name, c.password)), 200); e.User != c.name {
			t.Errorf("%s with a password: the answer is for %q", path, e.User)
		}
	}
}
