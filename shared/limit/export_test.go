package limit

// Gates returns how many gates are in use.
func (t *Tries) Gates() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.gates)
}

// UnderWay returns how many tries of a source are under way.
func (t *Tries) UnderWay(source string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.gates[key("source", source)]; g != nil {
		return int(g.underWay)
	}
	return 0
}
