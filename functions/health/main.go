package main

import (
	"ferry/shared/api/endpoint"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() { lambda.Run(endpoint.Health(), lambda.Table(dynamo.Open)) }
