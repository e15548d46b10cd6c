//go:build !linux

package disk

// replayJournal does nothing: there were journals only on Linux.
func (*Store) replayJournal() error { return nil }
