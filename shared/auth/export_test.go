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

// Lanes returns how many lanes are in use.
func (h *Hasher) Lanes() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.lanes)
}

// UnderWay returns how many tries of a source are under way, and how many may be.
func (h *Hasher) UnderWay(source string) (tries, most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.lanes[table.Key{PK: "throttle#" + source, SK: "source"}]; l != nil {
		tries = int(l.underWay)
	}
	return tries, cap(h.slots)
}
