package table

import "sync"

// memoSize is the most items that a Memo holds. A file's record takes about 1 KiB.
const memoSize = 4096

// Memo caches decoded items by their stored form, as decoding a page costs more than reading it.
// Equal forms decode alike, so an entry never goes stale. When the cache is full, it is emptied.
// The zero value is ready; it is safe for concurrent use.
type Memo[T any] struct {
	mu    sync.Mutex
	known map[string]T
}

// Read decodes an item, from the cache if possible.
func (m *Memo[T]) Read(item Item, decode func(Item) (T, error)) (T, error) {
	m.mu.Lock()
	value, ok := m.known[string(item.Raw)]
	m.mu.Unlock()
	if ok {
		return value, nil
	}
	value, err := decode(item)
	if err == nil && item.Raw != nil { // not every backend has a stored form
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.known == nil || len(m.known) == memoSize {
			m.known = map[string]T{}
		}
		m.known[string(item.Raw)] = value
	}
	return value, err
}
