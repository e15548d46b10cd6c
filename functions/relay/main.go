package main

import (
	"ferry/shared/boot/port/snstopics"

	"ferry/shared/boot/worker"
)

func main() { worker.RunRelayer(snstopics.Open) }
