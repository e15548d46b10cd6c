package main

import (
	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/notify/sns"
	"ferry/shared/table/dynamo"
)

func main() {
	worker.Run(worker.SweeperHandler, worker.Backends{Topics: sns.OpenTopics},
		lambda.Table(dynamo.Open), lambda.Format, lambda.Blobs(s3.Open), lambda.LinkKey)
}
