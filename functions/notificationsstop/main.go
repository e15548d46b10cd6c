package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/ssmkey"
	"ferry/shared/endpoint/notificationsstop"
)

func main() { function.Run(notificationsstop.Endpoint(), dynamotable.Open, ssmkey.Open) }
