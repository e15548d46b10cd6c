package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"
	"ferry/shared/endpoint/downloadfile"
)

func main() { function.Run(downloadfile.Endpoint(), dynamotable.Open, s3blobs.Open) }
