package main

import (
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/smstext"
	"ferry/shared/boot/port/sqsqueue"

	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
)

func main() { worker.RunCourier(dynamotable.Open, lambda.LinkKey, sqsqueue.Open, smstext.Open) }
