package main

import (
	"ferry/shared/boot/port/dynamotable"

	"ferry/shared/api/account"
	"ferry/shared/boot/lambda"
)

func main() { lambda.Run(account.Stop(), dynamotable.Open, lambda.LinkKey) }
