package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ferry/shared/api"
)

func loads() []load {
	return []load{
		{"nothing", 0, 1e5, upload, download, 1e5, 0},
		{"1,000 files of 1 MB, each with one mail", 1000, 1 << 20,
			"upload of 1 MB with one mail", "download by link, 1 MB", 1 << 20, 1},
		{"100 GB in 100 files", 100, gb, upload1GB, downloadFar, large, 0},
		{"1 TB in 1,000 files", 1000, gb, upload1GB, downloadFar, large, 0},
		{"1,000,000 files of 100 KB", 1e6, 1e5, upload, download, 1e5, 0},
	}
}

func (b *book) comparison() [][]string {
	rows := [][]string{{"a month, each file stored and downloaded once",
		"Ferry on AWS", "AWS Transfer Family", "a small virtual machine", "data out, the same for all"}}
	for _, l := range loads() {
		rows = append(rows, []string{l.name, dollars(b.ferry(l)), dollars(b.transferFamily(l)), dollars(b.machine(l)),
			dollars(l.files * l.size * b.rates[outBytes])})
	}
	return rows
}

func (b *book) figures() [][]string {
	return [][]string{
		{"", "USD"},
		{"1,000 uploads of 100 KB", money(1000 * b.usd(upload))},
		{"1,000 uploads of 100 KB, each with one mail", money(1000 * b.usd(upload+" with one mail"))},
		{"SES's share of that", money(1000 * b.rates[mails])},
		{"1 GB up by `ferry up`, in 64 parts of 16 MB", money(b.usd(upload1GB))},
		{"S3's share of that", money(b.counts[upload1GB].Units[puts] * b.rates[puts])},
		{"1 GB stored for a month", money(b.rates[objectMonths])},
		{"1 GB down by a redirect, without data out", money(b.usd(downloadFar) - large*b.rates[outBytes])},
		{"1 GB of data out to the internet", money(gb * b.rates[outBytes])},
		{"a file's move to the backup area, by the sweep", money(b.perFile(sweepMove))},
		{fmt.Sprintf("1,000,000 files up, kept for %d days, moved, kept for %d, removed",
			api.DefaultKeepDays, api.DefaultBackupDays), dollars(1e6 * (b.usd(upload) + b.life()))},
		{"the daily sweep of a stack without files, per month", money(daysPerMonth * b.usd(sweepEmpty))},
		{"the daily sweep of a stack with files, none due, per month", money(daysPerMonth * b.usd(sweepStay))},
		{"a queue that Lambda polls, per month", money(b.poll())},
		{"files of 100 KB a month above which the machine costs less", fmt.Sprintf("%.2f million", b.even(loads()[4])/1e6)},
	}
}

// operations returns the calls and the cost of each operation.
func (b *book) operations() [][]string {
	rows := [][]string{{"operation", "functions", "calls", "read units", "write units",
		"ms", "KB logged", "KB out", "USD for 1,000"}}
	for _, c := range b.order {
		seconds, events := 0.0, map[string]int{}
		for name, r := range c.Runs {
			seconds += r.seconds(name)
			events[name] = r.Events
		}
		rows = append(rows, []string{c.Operation, listed(events), listed(c.calls()),
			fmt.Sprint(c.Units[reads]), fmt.Sprint(c.Units[writes]), fmt.Sprintf("%.0f", seconds*1000),
			fmt.Sprintf("%.1f", c.Units[logBytes]/1024), fmt.Sprintf("%.1f", c.Units[outBytes]/1024),
			money(1000 * b.usd(c.Operation))})
	}
	return rows
}

// calls returns the calls of all functions, of the caller and of AWS itself.
func (c *count) calls() map[string]int {
	all := map[string]int{}
	maps.Copy(all, c.Beside)
	for _, r := range c.Runs {
		for name, n := range r.Calls {
			all[name] += n
		}
	}
	return all
}

// listed lists names, with how often each occurs.
func listed(times map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(times)) {
		if n := times[name]; n > 1 {
			name += fmt.Sprintf(" ×%d", n)
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

func dollars(usd float64) string { return fmt.Sprintf("%.2f", usd) }

// money formats amounts far below a dollar.
func money(usd float64) string {
	if usd < 0.00005 {
		return fmt.Sprintf("%.6f", usd)
	}
	return fmt.Sprintf("%.4f", usd)
}
