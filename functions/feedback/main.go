package main

import (
	"ferry/shared/boot/feedback"
	"ferry/shared/boot/port/dynamotable"
)

func main() { feedback.Run(dynamotable.Open) }
