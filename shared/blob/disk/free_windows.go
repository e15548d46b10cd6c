package disk

import "errors"

// Free is not supported: ferry serve does not run on Windows.
func (s *Store) Free() (int64, error) { return 0, errors.ErrUnsupported }
