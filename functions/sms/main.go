package main

import (
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/notify/sns"
	"ferry/shared/table/dynamo"
)

func main() {
	worker.Run(worker.CourierHandler, worker.Backends{Queue: worker.OpenQueue, SMS: sns.OpenText},
		lambda.Table(dynamo.Open), lambda.LinkKey)
}
