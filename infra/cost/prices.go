package main

// price is what AWS charges for one unit, in us-east-1, without what is free.
type price struct {
	unit   unit
	per    float64 // units
	usd    float64 // for so many
	source string
}

// unit is something that AWS counts.
type unit string

// The units, in the order of the output.
const (
	requests    unit = "API Gateway: requests"
	invocations unit = "Lambda: invocations"
	gbSeconds   unit = "Lambda: GB-seconds (assumed times)"
	puts        unit = "S3: PUT requests"
	reads       unit = "DynamoDB: read units"
	writes      unit = "DynamoDB: write units"
	publishes   unit = "SNS: publications"
	queueCalls  unit = "SQS: requests"
	mails       unit = "SES: mails"
)

// pricesDate is when the prices were looked up: those of SNS, SQS, DynamoDB and
// the HTTP API in articles of 2025 and 2026, those of Lambda, SES and S3 in
// undated ones. What holds is AWS's own page, which is named with each.
const pricesDate = "2026-11-21"

func prices() []price {
	return []price{
		{requests, 1e6, 1.00, "https://aws.amazon.com/api-gateway/pricing/"}, // HTTP API, by 512 KB
		{invocations, 1e6, 0.20, "https://aws.amazon.com/lambda/pricing/"},
		{gbSeconds, 1, 0.0000133334, "https://aws.amazon.com/lambda/pricing/"}, // arm64
		{puts, 1e3, 0.005, "https://aws.amazon.com/s3/pricing/"},
		{reads, 1e6, 0.125, "https://aws.amazon.com/dynamodb/pricing/on-demand/"},
		{writes, 1e6, 0.625, "https://aws.amazon.com/dynamodb/pricing/on-demand/"},
		{publishes, 1e6, 0.50, "https://aws.amazon.com/sns/pricing/"}, // by 64 KB; deliveries to queues and functions are free
		{queueCalls, 1e6, 0.40, "https://aws.amazon.com/sqs/pricing/"},
		{mails, 1e3, 0.10, "https://aws.amazon.com/ses/pricing/"},
	}
}

// run is a function's memory in GB, as in template.yaml, and the time that one
// event takes it, in seconds. The times are assumed, on the long side: they
// depend on the network inside AWS.
type run struct{ gb, seconds float64 }

func runs() map[string]run {
	return map[string]run{
		"upload":   {1, 0.200},
		"relay":    {0.25, 0.050},
		"email":    {0.25, 0.300},
		"feedback": {0.25, 0.050},
	}
}
