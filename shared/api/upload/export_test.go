package upload

// ReprDigest is reprDigest for tests.
func ReprDigest(header string) ([]byte, error) { return reprDigest(header) }
