package main

import (
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"
	"ferry/shared/boot/port/snstopics"

	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
)

func main() { worker.RunSweeper(dynamotable.Open, s3blobs.Open, lambda.LinkKey, snstopics.Open) }
