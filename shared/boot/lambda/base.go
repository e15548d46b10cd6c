package lambda

import (
	"crypto/rand"
	"log/slog"
	"os"
	"time"

	"ferry/shared/auth"

	"ferry/shared/api/endpoint"
)

// Base returns the ports that every program on AWS has; the others are nil
// until they are opened.
func Base(settings endpoint.Settings) (*endpoint.Ports, error) {
	hasher, err := auth.NewHasher(auth.DefaultParams(), rand.Reader, time.Now)
	if err != nil {
		return nil, err
	}
	return &endpoint.Ports{
		Hasher: hasher, Random: rand.Reader, Now: time.Now,
		Log:      slog.New(slog.NewJSONHandler(os.Stdout, nil)),
		Notify:   func() {}, // the table's stream tells of what is in the outbox
		Settings: settings,
	}, nil
}
