package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/endpoint/oauthtoken"
)

func main() { function.Run(oauthtoken.Endpoint(), dynamotable.Open) }
