package main

import "ferry/shared/boot/linkkey"

func main() { linkkey.Run() }
