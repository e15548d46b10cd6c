package local_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"ferry/shared/boot/local"
	"ferry/shared/notify"
)

func TestTheWebhookSecretIsMadeOnceAndReadableOnlyByItsOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	all := make([]string, 8)
	for i := range all {
		wg.Go(func() {
			text, _, err := local.WebhookSecret(dir)
			if err != nil {
				t.Error(err)
			}
			all[i] = text
		})
	}
	wg.Wait()
	for _, text := range all {
		if _, err := notify.ParseWebhookSecrets(text); err != nil || text != all[0] {
			t.Errorf("%q, %v", text, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "webhook.secret"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are there", len(entries))
	}
}
