package main

import "ferry/shared/boot/worker"

func main() { worker.RunLinkKey() }
