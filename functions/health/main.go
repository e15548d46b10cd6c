package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/endpoint/health"
)

func main() { function.Run(health.Endpoint(), dynamotable.Open) }
