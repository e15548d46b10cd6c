package main

import (
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/notify/sns"
	"ferry/shared/notify/sqs"
	"ferry/shared/table/dynamo"
)

func main() {
	worker.Run(worker.CourierHandler, worker.Backends{Queue: sqs.Open, Courier: worker.SMS(sns.OpenText)},
		lambda.Table(dynamo.Open), lambda.LinkKey)
}
