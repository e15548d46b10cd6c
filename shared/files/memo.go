package files

import (
	"fmt"
	"sync"

	"ferry/shared/envelope"
	"ferry/shared/table"
)

// Listed is a file with the token of its link.
type Listed struct {
	File
	Token  string
	record envelope.File
}

// Record is the file as a response shows it. link is all of its link before the
// token, as auth.DownloadLink returns it.
func (l Listed) Record(link string) envelope.File {
	if l.record.ID == 0 {
		l.record = l.File.Record()
	}
	l.record.LinkURL = link + l.Token
	return l.record
}

// Listed returns the file with its token.
func (s *Service) Listed(f File) Listed { return Listed{File: f, Token: s.Token(f)} }

// memoSize is how many records are remembered at most, some 1 KiB each.
const memoSize = 4096

// memo remembers what items decode to, by their stored form. Decoding a page
// costs more than reading it, and each upload is answered with one. As the
// same form always decodes alike nothing ever has to be forgotten, but for
// room: the older half goes when the younger is full.
type memo[T any] struct {
	mu         sync.Mutex
	young, old map[string]T
}

func (m *memo[T]) get(raw []byte) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := m.young[string(raw)]; ok {
		return value, true
	}
	value, ok := m.old[string(raw)]
	if ok {
		m.keep(raw, value)
	}
	return value, ok
}

// keep is for one who holds the lock.
func (m *memo[T]) keep(raw []byte, value T) {
	if m.young == nil || len(m.young) >= memoSize/2 {
		m.young, m.old = map[string]T{}, m.young
	}
	m.young[string(raw)] = value
}

// read returns what an item decodes to, or what an equal one decoded to.
func (m *memo[T]) read(item table.Item, decode func(table.Item) (T, error)) (T, error) {
	if value, ok := m.get(item.Raw); ok && item.Raw != nil {
		return value, nil
	}
	value, err := decode(item)
	if err == nil && item.Raw != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.keep(item.Raw, value)
	}
	return value, err
}

// listed decodes a record.
func (s *Service) listed(item table.Item) (Listed, error) {
	var f File
	if err := item.Decode(&f); err != nil {
		return Listed{}, fmt.Errorf("reading a file's record: %w", err)
	}
	l := s.Listed(f)
	l.record = f.Record().Rendered()
	return l, nil
}
