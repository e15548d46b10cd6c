package main

import (
	"ferry/shared/api/account"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() { lambda.Run(account.Tokens(), lambda.Table(dynamo.Open)) }
