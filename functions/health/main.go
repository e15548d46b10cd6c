package main

import (
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"

	"ferry/shared/api"
)

func main() { lambda.Run(api.Health(), lambda.Table(dynamo.Open)) }
