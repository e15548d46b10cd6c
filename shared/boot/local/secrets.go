package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ferry/shared/blob/disk"
	"ferry/shared/fault"
	"ferry/shared/keys"
	"ferry/shared/notify"
)

// WebhookSecret reads the secret that signs events from its file in a data folder, or
// makes it, and returns the path too.
func WebhookSecret(dir string) (text, path string, err error) {
	path = filepath.Join(dir, SecretName)
	text, _, err = readOrMake(path, "webhook secret", notify.NewWebhookSecret)
	return text, path, err
}

// keyMemory is how long a process caches the link key before it checks the file again.
const keyMemory = time.Second

// linkKey opens the link key, a file in a data folder. It makes the file, and the folder, unless
// they must exist.
func linkKey(dir string, o Options) (key keys.LinkKey, made bool, err error) {
	path := filepath.Join(dir, KeyName)
	if _, err := os.Stat(path); o.Existing && errors.Is(err, fs.ErrNotExist) {
		return key, false, fmt.Errorf("%s: %w", path, ErrNoKey)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return key, false, fmt.Errorf("making the data directory: %w", err)
	}
	if _, made, err = readOrMake(path, "link key", keys.RandomToken); err != nil {
		return key, false, err
	}
	key, err = keys.Open(context.Background(), keys.Store{
		Read: func(context.Context) (string, error) {
			text, err := os.ReadFile(path)
			return string(text), err
		},
		Write: func(_ context.Context, text string) error {
			return disk.WritePrivate(path, strings.NewReader(text+"\n"), os.Rename)
		},
		Memory: keyMemory,
	}, o.Now, o.Log)
	if err != nil {
		return key, false, fmt.Errorf("%s: %w: %w", path, ErrKey, err)
	}
	return key, made, nil
}

// readOrMake reads a secret from its file, or makes it if the file is missing. Two
// processes at the same time agree: each links its file into place, and only the
// first link succeeds.
func readOrMake(
	path, what string,
	generate func(io.Reader) (string, error),
) (text string, made bool, err error) {
	raw, err := os.ReadFile(path)
	made = errors.Is(err, fs.ErrNotExist)
	if made {
		if text, err = generate(rand.Reader); err == nil {
			err = disk.WritePrivate(path, strings.NewReader(text+"\n"), os.Link)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", false, fmt.Errorf("making the %s: %w", what, err)
		}
		raw, err = os.ReadFile(path)
	}
	return string(raw), made, fault.Wrap(err, "reading the "+what)
}
