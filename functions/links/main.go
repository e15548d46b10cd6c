package main

import (
	"ferry/shared/api/file"
	"ferry/shared/api/param"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() {
	lambda.Run(file.Sharing(), lambda.Check(param.CheckCountries), lambda.Table(dynamo.Open), lambda.LinkKey)
}
