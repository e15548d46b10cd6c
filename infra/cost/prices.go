package main

// Where and when the prices hold.
const (
	region     = "us-east-1"
	pricesDate = "2026-11-21" // when they were looked up
)

// unit is something that AWS charges for.
type unit string

// The units, in the order of the output: those of calls, those of keeping
// things, and those of what is off unless a parameter turns it on.
const (
	requests    unit = "API Gateway: requests to an HTTP API, each 512 KB"
	invocations unit = "Lambda: invocations"
	gbSeconds   unit = "Lambda: GB-seconds, arm64"
	reads       unit = "DynamoDB: read request units"
	writes      unit = "DynamoDB: write request units"
	puts        unit = "S3: PUT, COPY, POST and LIST requests"
	gets        unit = "S3: GET and other requests"
	publishes   unit = "SNS: publications, each 64 KB"
	queueCalls  unit = "SQS: requests, each 64 KB"
	mails       unit = "SES: mails"
	texts       unit = "SNS: text messages to the United States"
	logBytes    unit = "CloudWatch Logs: bytes taken in"
	outBytes    unit = "Data out to the internet: bytes"

	objectMonths  unit = "S3: GB-months"
	tableMonths   unit = "DynamoDB: GB-months"
	recoverMonths unit = "DynamoDB: GB-months of point-in-time recovery"
	logMonths     unit = "CloudWatch Logs: GB-months, compressed"
	keyCalls      unit = "KMS: requests"

	alarmMetrics unit = "CloudWatch: metrics of alarms, a month"
	ownMetrics   unit = "CloudWatch: metrics of one's own, a month"
	dashboards   unit = "CloudWatch: dashboards, a month"

	transferHours unit = "Transfer Family: hours of a protocol"
	transferGB    unit = "Transfer Family: GB up or down"
	machineHours  unit = "EC2: hours of a t4g.small with Linux"
	diskMonths    unit = "EBS: GB-months of gp3"
	addressHours  unit = "VPC: hours of a public IPv4 address"
)

// gb is what AWS takes for a GB.
const gb = 1 << 30

// price is what AWS charges in region, on demand, at the first tier and without
// what is free each month.
type price struct {
	unit unit
	usd  float64
	per  float64 // units
	page string  // AWS's own, which holds
	read string  // where the number was read, and from when that is
	own  bool    // those are AWS's own words; else others quote them
}

func prices() []price {
	const (
		apiGateway = "https://aws.amazon.com/api-gateway/pricing/"
		lambda     = "https://aws.amazon.com/lambda/pricing/"
		dynamoDB   = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
		s3         = "https://aws.amazon.com/s3/pricing/"
		sns        = "https://aws.amazon.com/sns/pricing/"
		cloudWatch = "https://aws.amazon.com/cloudwatch/pricing/"
		transfer   = "https://aws.amazon.com/aws-transfer-family/pricing/"

		whitepaper  = "https://docs.aws.amazon.com/whitepapers/latest/best-practices-api-gateway-private-apis-integration/cost-optimization.html, undated"
		lambdaCopy  = "https://github.com/api-evangelist/aws-lambda, a transcript of AWS's page, 2026-09-20"
		quoted      = "a public repository that quotes AWS's page, 2026-10-04"
		transferOwn = "https://github.com/api-evangelist/amazon-transfer-family, a transcript of the examples on AWS's page, 2026-09-20"
		watch       = "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/, 2026-06-13"
	)
	return []price{
		{requests, 1.00, 1e6, apiGateway, whitepaper, true},
		{invocations, 0.20, 1e6, lambda, lambdaCopy, true},
		{gbSeconds, 0.0000133334, 1, lambda, "https://cloudchipr.com/blog/aws-lambda-pricing, 2024", false},
		{reads, 0.125, 1e6, dynamoDB, quoted, false},
		{writes, 0.625, 1e6, dynamoDB, quoted, false},
		{puts, 0.005, 1e3, s3, quoted, false},
		{gets, 0.0004, 1e3, s3, quoted, false},
		{publishes, 0.50, 1e6, sns, "https://www.factualminds.com/blog/amazon-sns-pricing-publishes-fanout-protocols/, 2026-06-13", false}, // to queues and functions, delivery is free
		{queueCalls, 0.40, 1e6, "https://aws.amazon.com/sqs/pricing/", "https://cloudburn.io/blog/amazon-sqs-pricing, 2026-03-14", false},
		{mails, 0.10, 1e3, "https://aws.amazon.com/ses/pricing/", "https://www.acecloudinterviews.com/tutorials/aws/ses/, undated", false},
		{texts, 0.00645, 1, "https://aws.amazon.com/sns/sms-pricing/", "several public repositories, 2025; others have 0.00581; without carriers' fees", false},
		{logBytes, 0.50, gb, cloudWatch, watch, false},
		{outBytes, 0.09, gb, "https://aws.amazon.com/ec2/pricing/on-demand/#Data_Transfer", "https://awsforengineers.com/blog/aws-api-gateway-pricing-explained, 2025-05-19", false},

		{objectMonths, 0.023, 1, s3, quoted, false},
		{tableMonths, 0.25, 1, dynamoDB, quoted, false},
		{recoverMonths, 0.20, 1, dynamoDB, "two public repositories, undated", false},
		{logMonths, 0.03, 1, cloudWatch, "a public repository, undated", false},
		{keyCalls, 0.03, 1e4, "https://aws.amazon.com/kms/pricing/", "https://usage.ai/blogs/aws/reserved-instances/dynamodb/encryption-cost/, 2026-04-21", false},

		{alarmMetrics, 0.10, 1, cloudWatch, watch, false},
		{ownMetrics, 0.30, 1, cloudWatch, watch, false},
		{dashboards, 3.00, 1, cloudWatch, watch, false},

		{transferHours, 0.30, 1, transfer, transferOwn, true},
		{transferGB, 0.04, 1, transfer, transferOwn, true},
		{machineHours, 0.0168, 1, "https://aws.amazon.com/ec2/pricing/on-demand/", "https://www.forasoft.com/blog/article/aws-vs-digitalocean-vs-hetzner-1302, 2026-04-27", false},
		{diskMonths, 0.08, 1, "https://aws.amazon.com/ebs/pricing/", "several public repositories, undated", false},
		{addressHours, 0.005, 1, "https://aws.amazon.com/vpc/pricing/", "https://www.doit.com/aws-public-ipv4-price-increase-the-complete-guide/ on AWS's announcement, in force since 2024-02-01", false},
	}
}

// rates are prices by the unit, for one of it.
type rates map[unit]float64

func newRates() rates {
	r := rates{}
	for _, p := range prices() {
		r[p.unit] = p.usd / p.per
	}
	return r
}

// of is what units cost.
func (r rates) of(units map[unit]float64) (usd float64) {
	for u, n := range units {
		usd += n * r[u]
	}
	return usd
}
