package disk

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestOneSyncServesAllWhoWaitButNoneWhoCameLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		release := make(chan error)
		g := newSyncGroup(func(string) error {
			begun.Add(1)
			return <-release
		})
		var answered atomic.Int64
		call := func() {
			if err := g.sync("dir"); err != nil {
				t.Errorf("got error %v", err)
			}
			answered.Add(1)
		}
		go call()
		synctest.Wait()
		for range 20 {
			go call()
		}
		synctest.Wait()
		if begun.Load() != 1 {
			t.Fatalf("%d syncs began at once, want 1", begun.Load())
		}
		release <- nil
		synctest.Wait()
		if answered.Load() != 1 || begun.Load() != 2 {
			t.Fatalf("after one sync %d are answered and %d begun, want 1 and 2", answered.Load(), begun.Load())
		}
		release <- nil
		synctest.Wait()
		if answered.Load() != 21 || begun.Load() != 2 {
			t.Fatalf("after two syncs %d are answered and %d begun, want 21 and 2", answered.Load(), begun.Load())
		}
		if len(g.latest) != 0 {
			t.Errorf("%d folders are remembered with nobody waiting", len(g.latest))
		}
	})
}

func TestAFailedSyncIsToldToAllItWouldHaveServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		release := make(chan error)
		g := newSyncGroup(func(string) error { return <-release })
		errs := make(chan error, 3)
		for range 3 {
			go func() { errs <- g.sync("dir") }()
			synctest.Wait()
		}
		release <- nil
		release <- broken
		if first := <-errs; first != nil {
			t.Errorf("the first got error %v", first)
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, broken) {
				t.Errorf("got error %v, want that of the sync", err)
			}
		}
	})
}

func TestFoldersAreSyncedApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := newSyncGroup(func(dir string) error {
			if dir == "slow" {
				<-release
			}
			return nil
		})
		done := make(chan error, 1)
		go func() { done <- g.sync("slow") }()
		synctest.Wait()
		if err := g.sync("quick"); err != nil {
			t.Error(err)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestKnownOwnersAreBounded(t *testing.T) {
	t.Parallel()
	var k knownOwners
	for i := range 3 * maxKnown {
		k.add(string(rune(i)))
		if len(k.dirs) > maxKnown {
			t.Fatalf("%d owners are remembered", len(k.dirs))
		}
	}
	if k.add("last"); !k.has("last") || k.has("never") {
		t.Error("an owner is not remembered, or one that was never added is")
	}
}
