package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ferry/shared/notify"
)

// WebhookSecret reads the secret that events are signed with from its file in a
// folder of data, or makes it, and returns where that is.
func WebhookSecret(dir string) (text, path string, err error) {
	path = filepath.Join(dir, secretName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeSecret(path); err != nil {
			return "", path, fmt.Errorf("making the webhook secret: %w", err)
		}
		raw, err = os.ReadFile(path)
	}
	if err != nil {
		return "", path, fmt.Errorf("reading the webhook secret: %w", err)
	}
	return string(raw), path, nil
}

func makeSecret(path string) error {
	text, err := notify.NewWebhookSecret(rand.Reader)
	if err != nil {
		return err
	}
	return makeFile(path, text)
}
