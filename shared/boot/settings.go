package boot

import (
	"ferry/shared/boot/lambda"

	"ferry/shared/api"
)

// Settings reads the settings from the environment; see settings.Read.
func Settings(getenv func(string) string) (api.Settings, error) {
	return lambda.ReadSettings(getenv)
}
