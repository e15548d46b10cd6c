package disk

import "os"

// SetSync replaces fsync, to act like another disk.
func (s *Store) SetSync(fsync func(*os.File) error) { s.fsync = fsync }

// SetLink replaces how links are made, to act like another file system.
func (s *Store) SetLink(link func(from, to string) error) { s.link = link }

// SetInodes replaces the count of files that the file system takes.
func (s *Store) SetInodes(free, total uint64) {
	s.inodes = func(string) (uint64, uint64, error) { return free, total, nil }
}

// CountKnown returns how many files are known.
func (s *Store) CountKnown() int { return len(s.known.at) }
