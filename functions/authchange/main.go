package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/endpoint/authchange"
)

func main() { function.Run(authchange.Endpoint(), dynamotable.Open) }
