package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/client"
)

// TestPlantedLinkIsNotFollowed downloads into a folder where somebody else has put links
// under the names that a download uses for a while.
func TestPlantedLinkIsNotFollowed(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	f, err := c.Upload(t.Context(), "a", "", []byte("new content"), client.Delivery{})
	must(t, err)
	remote, err := c.Head(t.Context(), f.Link)
	must(t, err)
	record, _ := json.Marshal(map[string]any{
		"etag":    remote.ETag,
		"length":  remote.Length,
		"missing": []map[string]int64{{"From": 0, "To": remote.Length}},
	})
	for _, name := range []string{"a.part", "a.part.json", "a.part.json.new"} {
		for _, recorded := range []bool{false, true} {
			dir := t.TempDir()
			victim := filepath.Join(dir, "victim")
			for path, text := range map[string][]byte{
				victim:                            []byte("precious"),
				filepath.Join(dir, "a.part.json"): record,
			} {
				if err := os.WriteFile(path, text, 0o600); err != nil || path != victim && !recorded {
					_ = os.Remove(path)
				}
			}
			_ = os.Remove(filepath.Join(dir, name))
			must(t, os.Symlink(victim, filepath.Join(dir, name)))
			_, err := c.Fetch(t.Context(), f.Link, client.FetchOptions{Path: dir})
			if err != nil && !errors.Is(err, client.ErrExists) {
				t.Errorf("%s: %v", name, err)
			}
			if got, _ := os.ReadFile(victim); string(got) != "precious" {
				t.Errorf("%s, recorded %v: the file that it links to holds %q", name, recorded, got)
			}
		}
	}
}

// TestListWithoutEndEnds reads lists whose pages always name another one.
func TestListWithoutEndEnds(t *testing.T) {
	t.Parallel()
	for what, page := range map[string]func(asked int) (next, files string){
		"the same page": func(int) (string, string) { return "after=7", `{"id":9},{"id":8}` },
		"the same file": func(int) (string, string) { return "after=7", `{"id":8}` },
		"two pages in turns": func(asked int) (string, string) {
			return fmt.Sprint("after=", asked%2), fmt.Sprintf(`{"id":%d}`, asked%2)
		},
		"always an older page": func(asked int) (string, string) { return fmt.Sprint("after=", 1<<50-asked), "" },
		"always newer files": func(asked int) (string, string) {
			return fmt.Sprint("after=", asked), fmt.Sprintf(`{"id":%d}`, asked)
		},
		"a longer address each": func(asked int) (string, string) {
			return "after=" + strings.Repeat("x", 200*asked), ""
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			asked := 0
			c := against(t, func(w http.ResponseWriter, _ *http.Request) {
				asked++
				next, files := page(asked)
				w.Header().Set("Link", `</v1/list?`+next+`>; rel="next"`)
				fmt.Fprintf(w, `{"bearer":"a bearer","uploads":[],"files":[%s]}`, files)
			})
			var files, sessions error
			for _, files = range c.Files(t.Context(), client.UserArea) {
			}
			for _, sessions = range c.Sessions(t.Context()) {
			}
			if !errors.Is(files, client.ErrAnswer) || !errors.Is(sessions, client.ErrAnswer) || asked > 210 {
				t.Errorf("after %d requests: %v, %v", asked, files, sessions)
			}
		})
	}
}
