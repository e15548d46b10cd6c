package main

import (
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/table/dynamo"
)

func main() { worker.Run(worker.FeedbackHandler, worker.Backends{}, lambda.Table(dynamo.Open)) }
