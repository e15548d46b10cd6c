package web

import (
	"testing"
	"time"

	"ferry/shared/links"
)

func TestAMessageThatWasNotLookedUpIsNoReasonToWarn(t *testing.T) {
	t.Parallel()
	for m, want := range map[message]string{{unread: true}: "unread", {}: "waiting", {state: "sent"}: "sent"} {
		if got := became(links.Live, "bob@example.com", 0, m, 30*24*time.Hour); got.word != want {
			t.Errorf("%+v: %s, want %s", m, got.word, want)
		}
	}
	if o := (outcome{word: "unread"}); o.Colour() != "" {
		t.Errorf("its colour is %s", o.Colour())
	}
}
