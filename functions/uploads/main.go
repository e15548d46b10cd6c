package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"
	"ferry/shared/boot/port/ssmkey"
	"ferry/shared/endpoint/uploads"
)

func main() { function.Run(uploads.Endpoint(), dynamotable.Open, s3blobs.Open, ssmkey.Open) }
