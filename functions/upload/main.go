package main

import (
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"

	"ferry/shared/api/upload"
	"ferry/shared/boot/lambda"
)

func main() { lambda.Run(upload.Upload(), dynamotable.Open, s3blobs.Open, lambda.LinkKey) }
