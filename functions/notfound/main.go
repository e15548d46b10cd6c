package main

import (
	"ferry/shared/boot/lambda"
	"ferry/shared/openapi"
)

func main() { lambda.Run(openapi.NotFound()) }
