package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/ssmkey"
	"ferry/shared/endpoint/filesget"
)

func main() { function.Run(filesget.Endpoint(), dynamotable.Open, ssmkey.Open) }
