package main

import (
	"ferry/shared/boot/worker"
	"ferry/shared/notify/sns"
)

func main() { worker.RunRelayer(worker.Backends{Topics: sns.OpenTopics}) }
