package main

import (
	"ferry/shared/boot/port/dynamotable"

	"ferry/shared/api/file"
	"ferry/shared/boot/lambda"
)

func main() { lambda.Run(file.Get(), dynamotable.Open, lambda.LinkKey) }
