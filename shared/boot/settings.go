package boot

import (
	"ferry/shared/api/endpoint"
	"ferry/shared/boot/lambda"
)

// Settings reads the settings from the environment; see settings.Read.
func Settings(getenv func(string) string) (endpoint.Settings, error) {
	return lambda.ReadSettings(getenv)
}
