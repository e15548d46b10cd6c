package envelope_test

import (
	"strings"
	"testing"

	"ferry/shared/envelope"
)

func TestOnlyValidRequestIDsAreCarried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, id string
		carried  bool
	}{
		{"an API gateway's", "JKJaXmPLvHcESHA=", true},
		{"a UUID", "c6af9ac6-7b61-11e6-9a41-93e8deadbeef", true},
		{"one of its own", envelope.NewRequestID(), true},
		{"none", "", false},
		{"one too long", strings.Repeat("a", 65), false},
		{"one with a line", "a\nb", false},
		{"one with a quote in it", `a"b`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := envelope.RequestID(envelope.WithRequestID(t.Context(), c.id))
			if c.carried && got != c.id || !c.carried && got != "" {
				t.Errorf("carried is %q", got)
			}
		})
	}
}

func TestNewRequestIDsDiffer(t *testing.T) {
	t.Parallel()
	if a, b := envelope.NewRequestID(), envelope.NewRequestID(); a == b || len(a) != 16 {
		t.Errorf("they are %q and %q", a, b)
	}
}
