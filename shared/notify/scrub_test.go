package notify_test

import (
	"strings"
	"testing"

	"ferry/shared/boot/boottest"
	"ferry/shared/notify"
)

func TestLogHoldsNoSecretAndNoWholeAddress(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	token, pin := p.key.Recipient("files", "demo", 1, onlyID()), p.key.PIN("nonce")
	link := base + "/download/file?lang=en&k=" + token
	for _, tt := range []struct {
		n      notify.Notice
		quotes string
	}{
		{p.linkNotice(1), "<ann@example.com> " + link + " and k=" + token + " and " + link[:len(link)-3] + "..."},
		{p.pinNotice(), "code " + pin + " for demo@example.net, call +393331234567"},
	} {
		srv := boottest.StartSMTP(t, boottest.SMTPOptions{Replies: map[string]string{".": "451 4.7.1 suspicious: " + tt.quotes}})
		n := p.put(t, tt.n)
		p.pass(t, p.sender(t, smtpSender(t, srv.Address)))
		if stored, _ := p.stored(t, n); !strings.Contains(stored.LastError, "451") || strings.Contains(stored.LastError, token) || strings.Contains(stored.LastError, pin) {
			t.Fatalf("stored: %+v", stored)
		}
	}
	text := p.textNotice()
	p.put(t, text)
	if sent, _ := p.pass(t, p.sender(t, nil)); sent != 1 {
		t.Fatalf("%d sent", sent)
	}
	log := p.log.String()
	for _, secret := range []string{"ann@example.com", "demo@example.net", "3331234567", token[:30], pin} {
		if strings.Contains(log, secret) {
			t.Errorf("%q is in %s", secret, log)
		}
	}
	if !strings.Contains(log, "a***@example.com") || !strings.Contains(log, "+39***67") {
		t.Errorf("no masked address is in %s", log)
	}
}
