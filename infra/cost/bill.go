package main

import (
	"maps"
	"strings"
)

// The units of AWS's prices that are used here; the page lists all.
const (
	gbSeconds  = "Lambda: GB-seconds, arm64"
	reads      = "DynamoDB: read request units"
	writes     = "DynamoDB: write request units"
	puts       = "S3: PUT, COPY, POST and LIST requests"
	gets       = "S3: GET and other requests"
	queueCalls = "SQS: requests, each 64 KB"
	mails      = "SES: mails"
	logBytes   = "CloudWatch Logs: bytes taken in"
	outBytes   = "Data out to the internet: bytes"

	objectMonths  = "S3: GB-months"
	tableMonths   = "DynamoDB: GB-months"
	recoverMonths = "DynamoDB: GB-months of point-in-time recovery"
	logMonths     = "CloudWatch Logs: GB-months, compressed"
	keyCalls      = "KMS: requests"

	transferHours = "Transfer Family: hours of a protocol"
	transferGB    = "Transfer Family: GB up or down"
	machineHours  = "EC2: hours of a t4g.small with Linux"
	diskMonths    = "EBS: GB-months of gp3"
	addressHours  = "VPC: hours of a public IPv4 address"
)

// Assumptions about what cannot be counted without AWS. They err on the high side.
const (
	// wholeCPU is the memory in MB with which a function has a whole CPU; with
	// less it has a part of one
	// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
	wholeCPU = 1769

	// Lambda polls each queue that it reads with 5 polls of 20 s, day and night
	// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html).
	pollers, pollSeconds = 5, 20

	// itemBytes is what the table stores for a file: record, link, and the 100
	// bytes that DynamoDB adds to each item.
	itemBytes = 2 << 10

	// keyMinutes is how long DynamoDB caches the table's key for a role
	// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html).
	keyMinutes = 5

	// sweepAtOnce is how many objects a sweep works on at once, in package worker. It waits
	// for all of them together.
	sweepAtOnce = 50

	hoursPerMonth = 730 // as in AWS's own calculator
	daysPerMonth  = hoursPerMonth / 24.0
	gb            = 1 << 30 // AWS's GB
)

// The operations in the tables and comparisons.
const (
	upload      = "upload of 100 KB"
	upload1GB   = "upload of 1 GB in a session, by `ferry up`"
	download    = "download by link, 100 KB"
	downloadFar = "download by link over 4 MB, by a redirect to S3"
	large       = 5 << 20 // bytes of this download

	sweepEmpty = "sweep of an empty stack"
	sweepStay  = "sweep of 100 files that stay"
	sweepMove  = "sweep that moves 100 files to the backup area"
	sweepPurge = "sweep that removes 100 files for good"
)

// latency is how long a function waits for a call, in ms. AWS promises a number only for
// DynamoDB ("single-digit milliseconds"); the others are usual times within a region,
// rounded up. Calls that a function makes at the same time count one after the other.
func latency(call string) float64 {
	switch service, operation, _ := strings.Cut(call, " "); {
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

// seconds returns how long a function takes for its events.
func (r *run) seconds(function string) float64 {
	wait := 0.0
	for name, n := range r.Calls {
		wait += float64(n) * latency(name)
	}
	if function == "sweep" && r.Calls["DynamoDB TransactWriteItems"] > sweepAtOnce {
		wait /= sweepAtOnce
	}
	return (r.Own*max(1, wholeCPU/float64(r.Memory)) + wait) / 1000
}

// usd returns the cost of an operation.
func (b *book) usd(operation string) (usd float64) {
	c := b.counts[operation]
	all := maps.Clone(c.Units)
	for name, r := range c.Runs {
		all[gbSeconds] += r.seconds(name) * float64(r.Memory) / 1024
	}
	for unit, n := range all {
		usd += n * b.rates[unit]
	}
	return usd
}

// perFile returns what a sweep costs per file that is moved or removed. A list of a
// thousand objects is one request, and those of a day are listed twice. A file that stays
// costs nothing.
func (b *book) perFile(sweep string) float64 {
	return (b.usd(sweep)-b.usd(sweepStay))/100 + 2*b.rates[puts]/1000
}

// life returns what a file's retention costs, all its life.
func (b *book) life() float64 { return b.perFile(sweepMove) + b.perFile(sweepPurge) }

// load is what happens in a month. Each file is stored for the whole month and downloaded
// once.
type load struct {
	name             string
	files, size      float64 // size in bytes
	upload, download string
	counted          float64 // bytes of the file in the counted download
	mails            float64 // of each file
}

// ferry returns the cost of a month of Ferry, without the data out.
func (b *book) ferry(l load) float64 {
	each := b.usd(l.upload) + b.usd(l.download) - l.counted*b.rates[outBytes]
	each += l.size/gb*b.rates[objectMonths] + itemBytes/float64(gb)*(b.rates[tableMonths]+b.rates[recoverMonths])
	usd := daysPerMonth * b.usd(map[bool]string{false: sweepEmpty, true: sweepStay}[l.files > 0])
	for _, c := range []*count{b.counts[l.upload], b.counts[l.download]} {
		each += c.Units[logBytes] / gb * b.rates[logMonths]
		for _, r := range c.Runs { // each function that runs asks for the table's key every few minutes
			usd += min(l.files*float64(r.Events), hoursPerMonth*60/keyMinutes) * b.rates[keyCalls]
		}
	}
	return usd + l.files*each + l.mails*b.poll()
}

// poll returns what Lambda's polling of a queue costs, day and night.
func (b *book) poll() float64 {
	return pollers * hoursPerMonth * 3600 / pollSeconds * b.rates[queueCalls]
}

// transferFamily returns the cost of a month of one SFTP endpoint of AWS Transfer Family,
// with its files in S3. It sends no mail.
func (b *book) transferFamily(l load) float64 {
	stored := l.files * l.size / gb * (2*b.rates[transferGB] + b.rates[objectMonths])
	return hoursPerMonth*b.rates[transferHours] + stored + l.files*(b.rates[puts]+b.rates[gets])
}

// machine returns the cost of a month of a virtual machine with a disk of 20 GB that runs
// `ferry serve`, with its files on the disk and its mail by SES.
func (b *book) machine(l load) float64 {
	usd := hoursPerMonth * (b.rates[machineHours] + b.rates[addressHours])
	return usd + (20+l.files*l.size/gb)*b.rates[diskMonths] + l.files*l.mails*b.rates[mails]
}

// even returns the number of files above which the machine costs less than Ferry for a
// load, if it can handle it.
func (b *book) even(l load) float64 {
	none, one := l, l
	none.files, one.files = 0, 1e6
	each := (b.ferry(one) - b.ferry(none) - b.machine(one) + b.machine(none)) / one.files
	return (b.machine(none) - b.ferry(none)) / each
}
