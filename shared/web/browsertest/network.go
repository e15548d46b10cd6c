package browsertest

import (
	"os"
	"path/filepath"
	"syscall"
)

// Alone waits until no test has a browser open, and lets none open one until this test ends. It is
// for tests that change this machine's network, as Docker does with each container, because
// browsers then drop their connections.
func Alone(t TB) {
	t.Helper()
	lockNetwork(t, syscall.LOCK_EX)
}

func lockNetwork(t TB, how int) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "ferry-network.lock"), os.O_CREATE, 0o666)
	if err != nil {
		t.Fatalf("opening the lock of the network: %v", err)
	}
	t.Cleanup(func() { f.Close() }) // this unlocks it
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		t.Fatalf("waiting for the network: %v", err)
	}
}
