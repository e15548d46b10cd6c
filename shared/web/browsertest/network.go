package browsertest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Alone waits until no test has a browser open, and lets none open one until this test ends. It is
// for tests that change this machine's network, as Docker does with each container, because
// browsers then drop their connections.
func Alone(t testing.TB) {
	t.Helper()
	unlock, err := lockNetwork(syscall.LOCK_EX)
	if err != nil {
		t.Fatalf("waiting for the network: %v", err)
	}
	t.Cleanup(unlock)
}

func lockNetwork(how int) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "ferry-network.lock"), os.O_CREATE, 0o666)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), how)
	}
	return func() { f.Close() }, err
}
