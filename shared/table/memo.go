package table

import "sync"

// memoSize is the most items that a Memo holds. A file's record takes about 1 KiB.
const memoSize = 4096

// Memo caches decoded items by their stored form, as decoding a page costs more than reading
// it. Equal forms decode alike, so an entry never goes stale. When the younger half is full, it
// replaces the older one. The zero value is ready; it is safe for concurrent use.
type Memo[T any] struct {
	mu         sync.Mutex
	young, old map[string]T
}

// Read decodes an item, from the cache if possible.
func (m *Memo[T]) Read(item Item, decode func(Item) (T, error)) (T, error) {
	m.mu.Lock()
	value, ok := m.young[string(item.Raw)]
	if !ok {
		if value, ok = m.old[string(item.Raw)]; ok {
			m.put(item.Raw, value)
		}
	}
	m.mu.Unlock()
	if ok {
		return value, nil
	}
	value, err := decode(item)
	if err == nil && item.Raw != nil { // not every backend has a stored form
		m.mu.Lock()
		defer m.mu.Unlock()
		m.put(item.Raw, value)
	}
	return value, err
}

// put adds a value. The caller holds the lock.
func (m *Memo[T]) put(raw []byte, value T) {
	if m.young == nil || len(m.young) >= memoSize/2 {
		m.young, m.old = map[string]T{}, m.young
	}
	m.young[string(raw)] = value
}
