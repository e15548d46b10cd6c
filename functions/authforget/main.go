package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/ssmkey"
	"ferry/shared/endpoint/authforget"
)

func main() { function.Run(authforget.Endpoint(), dynamotable.Open, ssmkey.Open) }
