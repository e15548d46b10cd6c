package main

import (
	"ferry/shared/boot/port/dynamotable"

	"ferry/shared/api/endpoint"
	"ferry/shared/boot/lambda"
)

func main() { lambda.Run(endpoint.Health(), dynamotable.Open) }
