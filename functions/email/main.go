package main

import (
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/notify/mail/ses"
	"ferry/shared/table/dynamo"
)

func main() {
	worker.Run(worker.CourierHandler, worker.Backends{Queue: worker.OpenQueue, Mail: ses.Open},
		lambda.Table(dynamo.Open), lambda.LinkKey)
}
