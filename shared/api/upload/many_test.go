package upload_test

import (
	"fmt"
	"sync"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
)

func TestThousandConcurrentUploadsLoseNone(t *testing.T) {
	t.Parallel()
	each, workers := 20, 50
	c := begin(t)
	if c.InStack() { // the emulator is a single Python process
		each, workers = 10, 10
	}
	all := each * workers
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for n := range each {
				name := fmt.Sprintf("file-%d-%d", worker, n)
				c.post("file="+name, name, "Accept", "text/plain").Want(200) // a list of each would take long to check
			}
		})
	}
	wg.Wait()
	listed := c.Ask("GET /download/list?limit=1000", "").Want(200).Files
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
		expect.Equal(t, f.Name, c.Get(f.LinkURL), f.Name)
	}
}
