package users

// Watch calls f around each computation of a hash.
func (h *Hasher) Watch(f func(compute func())) {
	idKey := h.idKey
	h.idKey = func(password, salt []byte, time, memory uint32, threads uint8, size uint32) (sum []byte) {
		f(func() { sum = idKey(password, salt, time, memory, threads, size) })
		return sum
	}
}
