package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/endpoint/authfirst"
)

func main() { function.Run(authfirst.Endpoint(), dynamotable.Open) }
