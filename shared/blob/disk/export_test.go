package disk

import "os"

// SetSync replaces fsync, to act like another disk.
func (s *Store) SetSync(fsync func(*os.File) error) { s.fsync = fsync }

// SetLink replaces how links are made, to act like another file system.
func (s *Store) SetLink(link func(from, to string) error) { s.link = link }
