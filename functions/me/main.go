package main

import (
	"ferry/shared/api/account"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() { lambda.Run(account.Me(), lambda.Table(dynamo.Open)) }
