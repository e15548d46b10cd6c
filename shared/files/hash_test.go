package files_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/files"
)

// TestALargeFilesHashIsComparedOverSeveralRequests completes again until the
// whole is compared, from another process each time.
func TestALargeFilesHashIsComparedOverSeveralRequests(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("0123456789"), 5<<20/10+1000)
	good := sha256.Sum256(content)
	for what, stated := range map[string][]byte{"the right one": good[:], "another one": bytes.Repeat([]byte{1}, 32)} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			service := func() *files.Service {
				p := c.Data.Ports
				return files.New(files.Config{Ports: p.Ports, Blobs: p.Blobs, Parts: p.Parts, Outbox: file.Outbox(p), HashStep: 2 << 20})
			}
			it, err := service().BeginSession(t.Context(), c.user(), files.Plan{Owner: "alice", Name: "large", Length: int64(len(content)), SHA256: stated}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for number := 1; number <= it.Layout().Count(); number++ {
				from := it.Layout().Offset(number)
				if _, err := service().WritePart(t.Context(), it.ID, number, bytes.NewReader(content[from:from+it.Layout().Size(number)]), nil); err != nil {
					t.Fatal(err)
				}
			}
			waits := 0
			for {
				now, err := service().Session(t.Context(), c.user(), it.ID)
				if err != nil {
					t.Fatal(err)
				}
				_, err = service().Complete(t.Context(), now, nil)
				if envelope.IsFault(err, envelope.Unavailable) && waits < 10 {
					waits++
					if want := fmt.Sprintf("%d of %d bytes", waits*2<<20, len(content)); !strings.Contains(err.Error(), want) {
						t.Fatalf("it says %v, want %q", err, want)
					}
					continue
				}
				wantHashed(t, c, err, what == "the right one", stated)
				break
			}
			if waits != 2 {
				t.Errorf("the caller had to come again %d times, want 2", waits)
			}
		})
	}
}

func wantHashed(t *testing.T, c caller, err error, right bool, stated []byte) {
	t.Helper()
	listed := len(c.Objects(blob.Files))
	if right {
		if err != nil || listed != 1 {
			t.Errorf("completing says %v, and there are %d objects", err, listed)
		}
		return
	}
	if !envelope.IsFault(err, envelope.Invalid) || !strings.Contains(err.Error(), fmt.Sprintf("%x", stated)) || listed != 0 {
		t.Errorf("completing says %v, and there are %d objects", err, listed)
	}
}
