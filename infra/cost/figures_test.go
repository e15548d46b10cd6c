package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/boot/boottest"
)

const (
	aDay   = 24 * 3600
	aMonth = hoursPerMonth * 3600
)

// TestOtherPagesHaveTheFiguresThatFollowFromTheCounts covers what an attack costs, and how
// far the stack goes. Their figures have two digits.
func TestOtherPagesHaveTheFiguresThatFollowFromTheCounts(t *testing.T) {
	t.Parallel()
	b := open(t)
	rows := map[string][]string{"infra/cost/ATTACKS.md": b.attacks(), "infra/stack/SCALE.md": b.scale()}
	for page, rows := range rows {
		text, err := os.ReadFile(filepath.Join(boottest.Root(t), page))
		check(t, err)
		for _, row := range rows {
			if !strings.Contains(string(text), row) {
				t.Errorf("%s has no %q", page, row)
			}
		}
	}
}

// attacks returns what callers without a login cost in a day: at 100 requests a second,
// and at what the throttles and LinkBytesPerHour let through.
func (b *book) attacks() []string {
	refused, described := b.usd("login with a wrong password"), b.usd("`GET /openapi.json`")
	packed := described + (17<<10-b.counts["`GET /openapi.json`"].Units[outBytes])*b.rates[outBytes]

	const most, tebibyte = 4 << 20, 1 << 40 // bytes of a download without a redirect
	perByte := (b.usd("download by link, 1 MB") - b.usd(download)) / (medium - small)
	given := b.usd("download by link, 1 MB") + (most-medium)*perByte
	bounded := func(bytesAnHour float64) float64 { // the others are refused after a read
		n := 24 * bytesAnHour / most
		return n*given + (100*aDay-n)*b.usd("`GET /health`")
	}

	body := *b.counts["an unknown address"] // the gateway takes it, and the function parses it for 38 ms
	body.Runs = map[string]*run{"upload": {Own: 38, Memory: 1024}}
	b.counts["body"] = &body
	taken := b.usd("body") + 8*b.rates[requests]

	return []string{
		row("| `GET /openapi.json` (146 KB), 100 a second | %s | %s; %s from those who take gzip (17 KB) |",
			100*aDay*described, 2*aDay*described, 2*aDay*packed),
		row("| wrong passwords from many addresses at `/auth/login`, 100 a second | %s | %s |", 100*aDay*refused, 20*aDay*refused),
		row("| the same in an `Authorization` header, on another route | %s | %s |", 100*aDay*refused, 100*aDay*refused),
		row("| a link to a file of 4 MB, 100 downloads a second | %s | %s; %s with `LinkBytesPerHour=100GB` |",
			100*aDay*given, bounded(tebibyte), bounded(100e9)),
		row("| a link to a larger file, fetched at 10 Gbit/s | %s | %s if ", 10e9/8*aDay*b.rates[outBytes], 24*tebibyte*b.rates[outBytes]),
		row("| bodies of 4.6 MB, 100 a second | %s | %s on each of those five routes, else %s |", 100*aDay*taken, 20*aDay*taken, 100*aDay*taken),
		row("a refused password costs %s USD for a million", 1e6*refused),
		row("Of the %s USD for a million bodies, 9 are the gateway's", 1e6*taken),
	}
}

// scale returns what files of 1 MB cost in a month: stored alone, and uploaded at a steady
// rate with the defaults of KeepDays and BackupDays.
func (b *book) scale() (rows []string) {
	const glacier, glacierCopy = 0.004, 0.02 / 1000 // USD for a GB-month in GLACIER_IR, and for a copy to it
	sweeps := daysPerMonth * b.usd(sweepStay)
	size := medium / float64(gb) // in GB
	records := itemBytes / float64(gb) * (b.rates[tableMonths] + b.rates[recoverMonths])
	for files, before := range map[string]string{"1,000": "0.01", "1,000,000": "4", "1,000,000,000": "3,900, but"} {
		var n float64
		_, _ = fmt.Sscan(strings.ReplaceAll(files, ",", ""), &n)
		rows = append(rows, row("| "+files+" | %s | %s | "+before, n*size*b.rates[objectMonths], n*records))
	}
	up := b.usd("upload of 1 MB with one mail") - b.usd(upload+" with one mail") + b.usd(upload)
	var moved, stored, cold []float64
	for _, rate := range []float64{1, 100, 10_000} {
		files := rate * 120 * aDay
		moved = append(moved, rate*aMonth*(up+b.life()))
		stored = append(stored, files*(size*b.rates[objectMonths]+records))
		copies := rate * aMonth * (glacierCopy - b.rates[puts] + b.rates[gets])
		cold = append(cold, files*(size*(b.rates[objectMonths]/4+glacier*3/4)+records)+copies)
	}
	return append(rows,
		row("| 0.01 | %s |", sweeps), row("| 4 | %s |", sweeps),
		row("140, %s | 14,000, %s | 1.4 million, %s |", moved...),
		row("| storage of 120 days of files, USD a month | %s | %s | %s |", stored...),
		row("its dearer copies included | %s | %s | %s |", cold...))
}

// row formats numbers with two digits.
func row(format string, numbers ...float64) string {
	var texts []any
	for _, n := range numbers {
		v := n
		unit := math.Pow(10, math.Floor(math.Log10(v))-1)
		switch v = math.Round(v/unit) * unit; {
		case v >= 1e6:
			texts = append(texts, fmt.Sprintf("%.2g million", v/1e6))
		case v >= 1000:
			texts = append(texts, fmt.Sprintf("%.0f,%03.0f", math.Floor(v/1000), math.Mod(v, 1000)))
		case v >= 10:
			texts = append(texts, fmt.Sprintf("%.0f", v))
		default:
			texts = append(texts, fmt.Sprintf("%.2g", v))
		}
	}
	return fmt.Sprintf(format, texts...)
}
