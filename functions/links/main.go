package main

import (
	"ferry/shared/api/file"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func main() {
	lambda.Run(file.Sharing(), lambda.Check(file.CheckCountries), lambda.Table(dynamo.Open), lambda.LinkKey)
}
