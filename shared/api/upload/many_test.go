package upload_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
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
