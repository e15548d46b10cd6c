package main

import (
	"ferry/shared/api"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() { lambda.Run(api.Health(), lambda.Table(dynamo.Open)) }
