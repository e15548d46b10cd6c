package lambda

import (
	"crypto/rand"
	"log/slog"
	"os"
	"time"

	"ferry/shared/auth"

	"ferry/shared/api"
)

// Base returns the ports that every program on AWS has; the others are nil
// until they are opened.
func Base(settings api.Settings) (*api.Ports, error) {
	hasher, err := auth.NewHasher(auth.DefaultParams(), rand.Reader, time.Now)
	if err != nil {
		return nil, err
	}
	return &api.Ports{
		Hasher: hasher, Random: rand.Reader, Now: time.Now,
		Log:      slog.New(slog.NewJSONHandler(os.Stdout, nil)),
		Notify:   func() {}, // the table's stream tells of what is in the outbox
		Settings: settings,
	}, nil
}
