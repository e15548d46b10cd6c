package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/endpoint/oauthrevoke"
)

func main() { function.Run(oauthrevoke.Endpoint(), dynamotable.Open) }
