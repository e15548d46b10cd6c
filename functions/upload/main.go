package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"
	"ferry/shared/boot/port/ssmkey"
	"ferry/shared/endpoint/upload"
)

func main() { function.Run(upload.Endpoint(), dynamotable.Open, s3blobs.Open, ssmkey.Open) }
