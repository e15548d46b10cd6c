package main

import (
	"ferry/shared/boot/port/snstopics"
	"ferry/shared/boot/relayer"
)

func main() { relayer.Run(snstopics.Open) }
