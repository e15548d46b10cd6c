package main

import (
	"ferry/shared/api/file"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() {
	lambda.Run(file.Restore(), lambda.Table(dynamo.Open), lambda.LinkKey, lambda.Mover)
}
