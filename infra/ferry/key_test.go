package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestARevocationThatIsLostIsNoticed puts back the file of the key while ferry waits for
// all processes, as another command does that changes the key at the same moment.
func TestARevocationThatIsLostIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir)
	file := filepath.Join(dir, "link.key")
	before, err := os.ReadFile(file)
	must(t, err)
	ended := make(chan result)
	go func() { ended <- runFerry(t, dir, "", "key", "revoke", "1") }()
	for text := before; bytes.Equal(text, before); {
		if text, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	must(t, errors.Join(os.WriteFile(file+".new", before, 0o600), os.Rename(file+".new", file)))
	if r := <-ended; r.code != exitOther || !strings.HasSuffix(r.err, "; repeat the command\n") {
		t.Errorf("%+v", r)
	}
}
