package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestDataWithAJournalStillWorks opens data of November 2026, when a journal kept small
// files durable: the server was killed, and then the power was lost, which
// destroyed the bytes of the files 1 to 3.
func TestDataWithAJournalStillWorks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unpack(t, "testdata/journal-2026-11.tar.gz", dir)
	const password = "ag5yw7exqaaftzgq"
	want := map[string]string{"b.txt": strings.Repeat("in the backup area\n", 100)[:700], "big.bin": strings.Repeat("\x00", 100_000)}
	for n := 1; n <= 5; n++ {
		want[fmt.Sprintf("f%d.txt", n)] = strings.Repeat(fmt.Sprintf("old file %d\n", n), 1000)[:n*1000]
	}
	look := func(dir string) {
		t.Helper()
		s := serve(t, dir)
		files := append(listed(s, password, "/download/list"), listed(s, password, "/download/list/backup")...)
		if len(files) != len(want) {
			t.Errorf("%d files are listed, want %d", len(files), len(want))
		}
		for _, f := range files {
			resp, err := http.Get(f.LinkURL)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || !bytes.Equal(got, []byte(want[f.Name])) {
				t.Errorf("%s has %d bytes, want %d, %v", f.Name, len(got), len(want[f.Name]), err)
			}
		}
		if code := s.stop(t); code != exitOK {
			t.Errorf("the server ended with code %d: %s", code, s.errs)
		}
	}
	copied, restored := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
	if r := runFerry(t, dir, "", "backup", copied); r.code != exitOK || !strings.Contains(r.out, "7 files; 7 of them new") {
		t.Errorf("backup: code %d: %s%s", r.code, r.out, r.err)
	}
	if r := runFerry(t, restored, "", "restore-data", copied); r.code != exitOK {
		t.Errorf("restore-data: code %d: %s%s", r.code, r.out, r.err)
	}
	look(restored)
	look(dir)
}
