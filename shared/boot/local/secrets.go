package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ferry/shared/auth"
	"ferry/shared/notify"
)

// WebhookSecret reads the secret that events are signed with from its file in a
// folder of data, or makes it, and returns where that is.
func WebhookSecret(dir string) (text, path string, err error) {
	path = filepath.Join(dir, secretName)
	text, _, err = readOrMake(path, "webhook secret", notify.NewWebhookSecret)
	return text, path, err
}

// linkKey reads the key of links from its file in a folder of data, or makes it.
func linkKey(dir string) (key auth.LinkKey, made bool, err error) {
	path := filepath.Join(dir, keyName)
	text, made, err := readOrMake(path, "link key", auth.RandomToken)
	if err != nil {
		return key, false, err
	}
	if key, err = auth.ParseLinkKey(text); err != nil {
		return key, false, fmt.Errorf("%s: %w: %w", path, ErrKey, err)
	}
	return key, made, nil
}

// readOrMake reads a secret from its file. If there is none, it makes one. Two
// processes at once agree: the file is linked into place, and only one link is
// made.
func readOrMake(path, what string, generate func(io.Reader) (string, error)) (text string, made bool, err error) {
	raw, err := os.ReadFile(path)
	if made = errors.Is(err, fs.ErrNotExist); made {
		if text, err = generate(rand.Reader); err == nil {
			err = WritePrivate(path, text+"\n", os.Link)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", false, fmt.Errorf("making the %s: %w", what, err)
		}
		raw, err = os.ReadFile(path)
	}
	if err != nil {
		return "", false, fmt.Errorf("reading the %s: %w", what, err)
	}
	return string(raw), made, nil
}

// WritePrivate writes a durable file that only its owner can read, and has place
// put it at its path.
func WritePrivate(path, text string, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), path)
}

// copySecrets copies the link key, without which links would be dead, and the
// secret of webhooks, if there is one.
func copySecrets(from, to string) error {
	if err := copySecret(from, to, keyName); err != nil {
		return fmt.Errorf("copying the link key: %w", err)
	}
	if err := copySecret(from, to, secretName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copying the webhook secret: %w", err)
	}
	return nil
}

func copySecret(from, to, name string) error {
	text, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return err
	}
	return WritePrivate(filepath.Join(to, name), string(text), os.Rename)
}
