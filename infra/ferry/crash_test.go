package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/files"
	"ferry/shared/users"
)

// answered is an upload whose answer arrived.
type answered struct {
	name, content, link string
}

// TestKillLosesNoConfirmedUpload kills the server in the middle of uploads,
// starts it again on the same data, and looks for every upload that was
// answered; then the sweeper must remove everything else.
func TestKillLosesNoConfirmedUpload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serve(t, dir)
	var all []answered
	for round := range 3 {
		s := first
		if round > 0 {
			s = serve(t, dir)
			s.password = first.password
		}
		all = append(all, uploadUntilKilled(t, s, round)...)
	}
	if len(all) == 0 {
		t.Fatal("no upload was answered before a kill: the test proves nothing")
	}
	wantAll(t, dir, all)
	wantNothingElse(t, dir, all)
}

// uploadUntilKilled uploads with several clients at once until the server is
// killed at a random moment.
func uploadUntilKilled(t *testing.T, s *server, round int) []answered {
	t.Helper()
	var mu sync.Mutex
	var all []answered
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
			for i := 0; ; i++ {
				content := make([]byte, random.IntN(300_000))
				for j := range content {
					content[j] = byte(random.Uint32())
				}
				a := answered{name: fmt.Sprintf("r%d-w%d-%d", round, worker, i), content: string(content)}
				if a.link = s.upload(a.name, a.content); a.link == "" {
					return
				}
				mu.Lock()
				all = append(all, a)
				mu.Unlock()
			}
		})
	}
	answeredSoFar := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(all)
	}
	for i := 0; answeredSoFar() < 10 && i < 60_000; i++ { // slow machines take a while to start
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
	must(t, s.Process.Kill())
	wg.Wait()
	_ = s.Wait()
	return all
}

func wantAll(t *testing.T, dir string, all []answered) {
	t.Helper()
	s := serve(t, dir)
	for _, a := range all {
		if status, got := s.get(a.link); status != http.StatusOK || got != a.content {
			t.Errorf("%s was confirmed but is not complete: status %d, %d bytes of %d",
				a.name, status, len(got), len(a.content))
		}
	}
	if code := s.stop(t); code != exitOK {
		t.Errorf("the server ended with code %d: %s", code, s.errs)
	}
}

// wantNothingElse sweeps a day later, removes leftovers, and compares what the store holds with
// what the table lists.
func wantNothingElse(t *testing.T, dir string, all []answered) {
	t.Helper()
	s := apitest.Open(t, dir)
	s.Clock.Advance(24 * time.Hour)
	if r, err := s.Service.Sweep(t.Context()); err != nil || !r.Complete || r.Failed > 0 {
		t.Fatalf("the sweep did %+v, %v", r, err)
	}
	removed, none := 0, func(int64) {} // a sweep would leave what is left over until its day
	repair := files.Check{
		Service: s.Service.Files(), Grace: time.Hour, Repair: true,
		Quick: true, Found: func(files.Finding) { removed++ }, Expect: none, Done: none,
	}
	if r, err := repair.Run(t.Context()); err != nil || r.Found != r.Mended {
		t.Fatalf("the check did %+v, %v", r, err)
	}
	left, err := s.Data.Disk.Sweep(t.Context(), time.Now().Add(time.Hour), nil)
	if err != nil || left > 0 {
		t.Errorf("%d temporary files were left after the sweep, %v", left, err)
	}
	objects := 0
	for after := ""; ; {
		page, err := s.Data.Disk.List(t.Context(), blob.Files, after, blob.MaxList)
		must(t, err)
		objects += len(page)
		if len(page) < blob.MaxList {
			break
		}
		after = page[len(page)-1].Key
	}
	listed := 0
	for after := int64(0); ; {
		page, err := s.Service.Files().List(t.Context(), users.User{Name: "demo"}, blob.Files, after, 1000)
		must(t, err)
		listed += len(page.Files)
		if after = page.Next; after == 0 {
			break
		}
	}
	t.Logf("%d uploads answered, %d visible, %d leftovers removed", len(all), listed, removed)
	// An upload may have been stored although its answer did not arrive.
	if objects != listed || listed < len(all) {
		t.Errorf("%d objects, %d files listed, %d uploads answered", objects, listed, len(all))
	}
}
