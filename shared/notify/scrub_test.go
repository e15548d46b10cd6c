package notify_test

import (
	"errors"
	"strings"
	"testing"

	"ferry/shared/notify"
)

func TestLogHoldsNoSecretAndNoWholeAddress(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	token, code := key.Recipient("files", "demo", 1, onlyID()), key.PIN("nonce")
	address := base + "/download/file?lang=en&k=" + token
	for _, tt := range []struct {
		notice         func(*machine) notify.Notice
		quoted, masked string
	}{
		{link, "<ann@example.com> " + address + " and k=" + token + " and " + address[:len(address)-3] + "...", "to=a***@example.com"},
		{pin, "code " + code + " for demo@example.net, call +393331234567", "to=d***@example.net"},
		{text, "+393331234567", "to=+39***67"},
	} {
		r := begin(t, tt.notice, true)
		tried(errors.New("451 suspicious: " + tt.quoted))(r)
		stored := r.find(t, r.notice.ID).LastError
		waited(r)
		sent(r)
		if log := r.log.String(); !strings.HasPrefix(stored, "451") || !strings.Contains(log, tt.masked) {
			t.Errorf("%q is stored and %s logged", stored, log)
		}
		for _, secret := range []string{"ann@example.com", "demo@example.net", "3331234567", token[:30], code} {
			if strings.Contains(stored+r.log.String(), secret) {
				t.Errorf("%q is stored or logged: %q, %s", secret, stored, r.log)
			}
		}
	}
}
