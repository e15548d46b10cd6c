package main

import (
	"ferry/shared/boot/port/dynamotable"
	"ferry/shared/boot/port/s3blobs"
	"ferry/shared/boot/port/snstopics"
	"ferry/shared/boot/port/ssmkey"
	"ferry/shared/boot/sweeper"
)

func main() { sweeper.Run(dynamotable.Open, s3blobs.Open, ssmkey.Open, snstopics.Open) }
