package auth

import "ferry/shared/table"

// Watch calls f around each computation of a hash.
func (h *Hasher) Watch(f func(compute func())) {
	idKey := h.idKey
	h.idKey = func(password, salt []byte, time, memory uint32, threads uint8, size uint32) (sum []byte) {
		f(func() { sum = idKey(password, salt, time, memory, threads, size) })
		return sum
	}
}

// Gates returns how many gates are in use.
func (t *Throttle) Gates() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.gates)
}

// UnderWay returns how many tries of a source are under way, and how many may be.
func (a *Authenticator) UnderWay(source string) (tries, most int) {
	a.Throttle.mu.Lock()
	defer a.Throttle.mu.Unlock()
	if l := a.Throttle.gates[table.Key{PK: "throttle#" + source, SK: "source"}]; l != nil {
		tries = int(l.underWay)
	}
	return tries, cap(a.Hasher.slots)
}
