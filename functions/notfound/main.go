package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/endpoint/notfound"
)

func main() { function.Run(notfound.Endpoint()) }
