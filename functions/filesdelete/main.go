package main

import (
	"ferry/shared/api/file"
	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() {
	lambda.Run(file.Delete(), lambda.Table(dynamo.Open), lambda.Blobs(s3.Open), lambda.LinkKey, lambda.Mover)
}
