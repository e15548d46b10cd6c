package boot

import (
	"ferry/shared/boot/settings"
	"ferry/shared/endpoint"
)

// Settings reads the settings from the environment; see settings.Read.
func Settings(getenv func(string) string) (endpoint.Settings, error) { return settings.Read(getenv) }
