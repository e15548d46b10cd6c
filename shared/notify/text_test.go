package notify_test

import (
	"errors"
	"strings"
	"testing"

	"ferry/shared/notify"
)

func TestTextMessageNeedsAnIDATextAndANumber(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		m    notify.TextMessage
		ok   bool
	}{
		{"a complete message is fine", notify.TextMessage{ID: "1", To: "+393331234567", Text: "hi"}, true},
		{"the longest number is fine", notify.TextMessage{ID: "1", To: "+123456789012345", Text: "hi"}, true},
		{"a number without plus is refused", notify.TextMessage{ID: "1", To: "3331234567", Text: "hi"}, false},
		{"a number with spaces is refused", notify.TextMessage{ID: "1", To: "+39 333 1234567", Text: "hi"}, false},
		{"a number of 16 digits is refused", notify.TextMessage{ID: "1", To: "+1234567890123456", Text: "hi"}, false},
		{"a country code of 0 is refused", notify.TextMessage{ID: "1", To: "+0333123456", Text: "hi"}, false},
		{"an empty text is refused", notify.TextMessage{ID: "1", To: "+393331234567"}, false},
		{"a missing ID is refused", notify.TextMessage{To: "+393331234567", Text: "hi"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := tt.m.Check(); (err == nil) != tt.ok || !tt.ok && !errors.Is(err, notify.ErrTextRefused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSegments(t *testing.T) {
	t.Parallel()
	turns(t, notify.Segments, []textTest[int]{
		{"nothing is no message", "", 0},
		{"160 characters of the GSM alphabet are one", strings.Repeat("à", 160), 1},
		{"161 are two", strings.Repeat("a", 161), 2},
		{"306 are two", strings.Repeat("a", 306), 2},
		{"307 are three", strings.Repeat("a", 307), 3},
		{"brackets take two places", strings.Repeat("[", 80), 1},
		{"81 brackets are two", strings.Repeat("[", 81), 2},
		{"a bracket is not divided between two messages", strings.Repeat("[", 76*2+1), 3},
		{"one other character reduces the most to 70", strings.Repeat("a", 69) + "ç", 1},
		{"71 with it are two", strings.Repeat("a", 70) + "ç", 2},
		{"an emoji takes two places", strings.Repeat("🚢", 35), 1},
		{"36 of them are two", strings.Repeat("🚢", 36), 2},
		{"an emoji is not divided between two messages", strings.Repeat("🚢", 33*2+1), 3},
	})
}
