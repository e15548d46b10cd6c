package main

import (
	"ferry/shared/boot/port/dynamotable"

	"ferry/shared/boot/lambda"

	"ferry/shared/api"
)

func main() { lambda.Run(api.Health(), dynamotable.Open) }
