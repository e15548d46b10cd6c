package main

import (
	"ferry/shared/api/param"
	"ferry/shared/api/upload"
	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() {
	lambda.Run(upload.Upload(), lambda.Check(param.CheckCountries),
		lambda.Table(dynamo.Open), lambda.Blobs(s3.Open), lambda.LinkKey)
}
