package main

import (
	"ferry/shared/api/file"
	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() {
	lambda.Run(file.Download(), lambda.Table(dynamo.Open), lambda.Blobs(s3.Open), lambda.KeyVersions)
}
