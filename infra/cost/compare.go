package main

import (
	"fmt"
	"math"
)

// load is what is done in a month. Each file is stored for all of it, and
// downloaded once.
type load struct {
	name     string
	files    float64
	size     float64 // in bytes
	upload   string
	download string
	counted  float64 // bytes of the file in the download that was counted
	mail     bool
}

func loads() []load {
	return []load{
		{"nothing", 0, small, upload, download, small, false},
		{"1,000 files of 1 MB, each with one mail", 1000, medium, uploadMedium, download1MB, medium, true},
		{"100 GB in 100 files", 100, gb, upload1GB, downloadFar, large, false},
		{"1 TB in 1,000 files", 1000, gb, upload1GB, downloadFar, large, false},
		{"1,000,000 files of 100 KB", 1e6, small, upload, download, small, false},
	}
}

// ferry is a month of Ferry, without the files' way out.
func (b *book) ferry(l load) float64 {
	each := b.usd(l.upload) + b.usd(l.download) - l.counted*b.rates[outBytes]
	days := daysPerMonth * (b.usd(sweepEmpty) + l.files*b.perFile(sweepStay))
	stored := l.size/gb*b.rates[objectMonths] + itemBytes/gb*(b.rates[tableMonths]+b.rates[recoverMonths])
	logs := (b.counts[l.upload].Units[logBytes] + b.counts[l.download].Units[logBytes]) / gb * b.rates[logMonths]
	usd := l.files*(each+stored+logs) + days + b.keys(l)*b.rates[keyCalls]
	if l.mail {
		usd += b.poll()
	}
	return usd
}

// keys are the calls to KMS for the table's key: each function that runs makes
// one at most every few minutes.
func (b *book) keys(l load) (n float64) {
	for _, name := range []string{l.upload, l.download} {
		for _, r := range b.counts[name].Runs {
			n += min(l.files*float64(r.Events), hoursPerMonth*60/keyMinutes)
		}
	}
	return n
}

// transferFamily is a month of one SFTP endpoint of AWS Transfer Family, with
// its files in S3. It sends no mail.
func (b *book) transferFamily(l load) float64 {
	each := l.size/gb*(2*b.rates[transferGB]+b.rates[objectMonths]) + b.rates[puts] + b.rates[gets]
	return hoursPerMonth*b.rates[transferHours] + l.files*each
}

// machineDisk is the disk of the virtual machine in GB, without what is stored.
const machineDisk = 20

// machine is a month of a virtual machine that runs `ferry serve`, with its
// files on its disk and its mail by SES.
func (b *book) machine(l load) float64 {
	usd := hoursPerMonth*(b.rates[machineHours]+b.rates[addressHours]) + (machineDisk+l.files*l.size/gb)*b.rates[diskMonths]
	if l.mail {
		usd += l.files * b.rates[mails]
	}
	return usd
}

// out is what the files' way out costs, whoever sends them.
func (b *book) out(l load) float64 { return l.files * l.size * b.rates[outBytes] }

// even is the number of files of a load from which the machine costs less than
// Ferry, if it can carry it.
func (b *book) even(l load) (files float64, err error) {
	none, one := l, l
	none.files, one.files = 0, 1e6
	each := (b.ferry(one) - b.ferry(none) - b.machine(one) + b.machine(none)) / one.files
	if each <= 0 {
		return 0, fmt.Errorf("%s: Ferry is never dearer", l.name)
	}
	n := (b.machine(none) - b.ferry(none)) / each
	digit := math.Pow(10, math.Floor(math.Log10(n))-1)
	return math.Round(n/digit) * digit, nil
}
