package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/endpoint/authlogin"
)

func main() { function.Run(authlogin.Endpoint(), dynamotable.Open) }
