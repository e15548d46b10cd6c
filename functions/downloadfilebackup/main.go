package main

import (
	"ferry/shared/boot/function"
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"
	"ferry/shared/endpoint/downloadfilebackup"
)

func main() { function.Run(downloadfilebackup.Endpoint(), dynamotable.Open, s3blobs.Open) }
