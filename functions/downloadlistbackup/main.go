package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/ssmkey"
	"ferry/shared/endpoint/downloadlistbackup"
)

func main() { function.Run(downloadlistbackup.Endpoint(), dynamotable.Open, ssmkey.Open) }
