package main

import (
	"ferry/shared/boot/courier"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/smstext"
	"ferry/shared/boot/port/sqsqueue"
	"ferry/shared/boot/port/ssmkey"
)

func main() { courier.Run(dynamotable.Open, ssmkey.Open, sqsqueue.Open, smstext.Open) }
