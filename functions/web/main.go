package main

import (
	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
	"ferry/shared/web"
)

func main() {
	lambda.Run(web.Endpoint(), lambda.Table(dynamo.Open), lambda.Blobs(s3.Open), lambda.LinkKey)
}
