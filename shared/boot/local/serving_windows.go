package local

// Serving does nothing: ferry serve does not run on Windows.
func Serving(string, string) (others []string, leave func(), err error) {
	return nil, func() {}, nil
}
