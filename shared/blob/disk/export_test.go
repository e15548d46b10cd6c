package disk

// SetLink replaces how links are made, to act like another file system.
func (s *Store) SetLink(link func(from, to string) error) { s.link = link }
