package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/ssmkey"
	"ferry/shared/endpoint/downloadlist"
)

func main() { function.Run(downloadlist.Endpoint(), dynamotable.Open, ssmkey.Open) }
