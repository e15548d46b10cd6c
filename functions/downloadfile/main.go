package main

import (
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"

	"ferry/shared/api/file"
	"ferry/shared/boot/lambda"
)

func main() { lambda.Run(file.Download(), dynamotable.Open, s3blobs.Open) }
