package main

import (
	"ferry/shared/boot/port/dynamotable"

	"ferry/shared/api/file"
	"ferry/shared/boot/lambda"
)

func main() { lambda.Run(file.List(), dynamotable.Open, lambda.LinkKey) }
