package local_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"ferry/shared/api"
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

func TestABackupHasTheWebhookSecretIfThereIsOne(t *testing.T) {
	t.Parallel()
	for what, made := range map[string]bool{"with": true, "without": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, to := t.TempDir(), t.TempDir()
			d, err := local.Open(dir, api.Settings{}, local.Options{NoSync: true})
			check(t, err)
			defer d.Close()
			var want string
			if made {
				want, _, err = local.WebhookSecret(dir)
				check(t, err)
			}
			_, err = d.Backup(t.Context(), to, false, unseen)
			check(t, err)
			got, err := os.ReadFile(filepath.Join(to, "webhook.secret"))
			if string(got) != want || (err == nil) != made {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
