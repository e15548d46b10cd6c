package main

import "strings"

// What cannot be counted without AWS is assumed here, on the long side, and
// nowhere else.
const (
	// wholeCPU is the memory in MB at which a function has a whole CPU; with
	// less it has that part of one
	// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
	// A CPU of Lambda is taken to be as fast as one of the machine that counts.
	wholeCPU = 1769

	// platformLogBytes are of the lines that Lambda itself logs of each event
	// (platform.start and platform.report, as JSON), logLineBytes what
	// CloudWatch and Lambda's JSON put around each line, accessLogBytes a line
	// of the gateway's access log in the format of template.yaml.
	platformLogBytes = 700
	logLineBytes     = 26
	accessLogBytes   = 450

	// headerBytes are of a response's header.
	headerBytes = 600

	// Lambda asks each queue that it reads with 5 polls of 20 s, day and night
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html).
	pollers, pollSeconds = 5, 20

	// itemBytes is what the table holds for a file: record, link, and what
	// DynamoDB adds to each item (100 bytes).
	itemBytes = 2 << 10

	// keyMinutes is for how long DynamoDB remembers the table's key for a role
	// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html).
	keyMinutes = 5

	hoursPerMonth = 730 // as AWS's own calculator has it
	daysPerMonth  = hoursPerMonth / 24.0
)

// latency is how long a function waits for a call, in ms. AWS promises no
// numbers but for DynamoDB ("single-digit milliseconds"); the others are what
// such calls usually take within a region, rounded up. Calls that a function
// makes at once are taken to come one after the other.
func latency(call string) float64 {
	service, operation, _ := strings.Cut(call, " ")
	switch {
	case operation == "TransactWriteItems":
		return 20
	case service == "DynamoDB":
		return 10
	case operation == "GetObject", operation == "HeadObject":
		return 40
	case service == "S3":
		return 80
	case service == "SNS", service == "SQS":
		return 30
	}
	return 200 // SES
}

// seconds is how long a function with so much memory (MB) takes for its events.
func (r *run) seconds(memory int) float64 {
	ms := r.Own * max(1, float64(wholeCPU)/float64(memory))
	for name, n := range r.Calls {
		ms += float64(n) * latency(name)
	}
	return ms / 1000
}
