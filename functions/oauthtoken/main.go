package main

import (
	"ferry/shared/api/account"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() { lambda.Run(account.Token(), lambda.Table(dynamo.Open)) }
