package main

import (
	"ferry/shared/boot/worker"
	"ferry/shared/notify/sns"
)

func main() { worker.Run(worker.RelayerHandler, worker.Backends{Topics: sns.OpenTopics}) }
