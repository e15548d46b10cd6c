package main

import (
	"ferry/shared/boot/port/dynamotable"

	"ferry/shared/boot/worker"
)

func main() { worker.RunFeedback(dynamotable.Open) }
