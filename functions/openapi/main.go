package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/endpoint/openapi"
)

func main() { function.Run(openapi.Endpoint()) }
