package wire

// Scale returns a number of bytes in the first unit, by powers of 1000, in which it is below next, and that unit's
// prefix.
func Scale(n int64, next float64) (value float64, prefix string) {
	value = float64(n)
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	for value >= next && len(prefixes) > 1 {
		value /= 1000
		prefixes = prefixes[1:]
	}
	return value, prefixes[0]
}
