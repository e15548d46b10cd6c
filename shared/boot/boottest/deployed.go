package boottest

import (
	"context"
	"os"

	"ferry/shared/boot"
	"ferry/shared/endpoint"
)

// Deployed is a stack in an emulator of AWS, as another process uses it.
type Deployed struct {
	Name        string
	Base        string            // the API's address, with /v1
	Environment map[string]string // of a program that works with the stack's data
}

// Ports opens the stack's data in this process, as an operator's commands do.
func (d Deployed) Ports(ctx context.Context) (*endpoint.Ports, error) {
	settings := endpoint.Settings{PublicURL: d.Base}
	settings.Retention.KeepDays, settings.Retention.BackupDays = 30, 90 // as the template has it
	getenv := func(name string) string {
		if v, ok := d.Environment[name]; ok {
			return v
		}
		return os.Getenv(name)
	}
	return boot.OpenPorts(ctx, settings, getenv, boot.Table, boot.Blobs, boot.LinkKey)
}
