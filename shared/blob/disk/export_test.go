package disk

// SetLink replaces how links are made, to act like another file system.
func (s *Store) SetLink(link func(from, to string) error) { s.link = link }

// SetOrdered makes the store rely, or not, on a sync of a file for its name.
func (s *Store) SetOrdered(ordered bool) { s.ordered = ordered }
