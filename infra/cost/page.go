package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ferry/infra/template"

	"ferry/shared/boot/lambda"
)

// report is the page of what all costs.
func (b *book) report(w io.Writer, t template.Template) error {
	fmt.Fprintf(w, "# What Ferry costs on AWS\n\n"+
		"`go run ./infra/cost` prints this page from [what was counted](counts.json), the prices in [prices.go](prices.go) and the few assumptions in [assumed.go](assumed.go);\n"+
		"`go run ./infra/awslocal -- go run ./infra/cost -count` counts anew. Prices are those of %s, on demand, at the first tier, as of %s; what is free each month is not taken off.\n\n"+
		"Counted are the calls that the functions' own handlers and backends make to stand-ins for AWS, with all that follows from an operation: the stream's records, each brought by itself,\n"+
		"topics, queues, mails and what SES tells of them. Public events are recorded. Alice's area has 100 files, which the answer to an upload lists.\n", region, pricesDate)
	b.uploads(w)
	b.gigabyte(w)
	if err := b.idleMonth(w, t); err != nil {
		return err
	}
	b.perOperation(w)
	priceList(w)
	return nil
}

// uploads are the lines of 1,000 uploads.
func (b *book) uploads(w io.Writer) {
	names := []string{upload, uploadMail, uploadText}
	fmt.Fprintf(w, "\n## 1,000 uploads of 100 KB by one call\n\n| USD | alone | with one mail | with one text message |\n|---|---|---|---|\n")
	sums := make([]float64, len(names))
	for _, p := range prices() {
		line, used := "| "+string(p.unit), false
		for i, name := range names {
			n := 1000 * b.units(b.counts[name])[p.unit]
			usd := n * b.rates[p.unit]
			sums[i] += usd
			used = used || n > 0
			line += " | " + money(usd)
			if n > 0 {
				line += " (" + quantity(n) + ")"
			}
		}
		if used {
			fmt.Fprintln(w, line+" |")
		}
	}
	fmt.Fprintf(w, "| **together** | **%s** | **%s** | **%s** |\n", money(sums[0]), money(sums[1]), money(sums[2]))
	calls := 0
	for _, r := range b.counts[uploadMail].Runs {
		for _, n := range r.Calls {
			calls += n
		}
	}
	fmt.Fprintf(w, "\nThe functions of an upload with one mail make %d calls to AWS. A text message has a price for each country and carrier; the one above is without carriers' fees. "+
		"What leaves is the answer, with its list.\n\nA file that stays its %d and %d days is looked at by a sweep each day, moved and removed: %s USD for 1,000 files, beside their storage.\n",
		calls, lambda.DefaultKeepDays, lambda.DefaultBackupDays, money(1000*b.life(lambda.DefaultKeepDays, lambda.DefaultBackupDays)))
}

// gigabyte is what a GB costs.
func (b *book) gigabyte(w io.Writer) {
	up, down := b.counts[upload1GB], b.counts[downloadFar]
	requests := b.units(down)[puts] + b.units(down)[gets]
	fmt.Fprintf(w, "\n## 1 GB in a session, straight to S3\n\n| | requests to S3 | USD |\n|---|---|---|\n")
	fmt.Fprintf(w, "| upload by `ferry up`, %d parts of 16 MB | %s | %s |\n", parts, listed(callsOf(up, "S3 ")), money(b.usd(upload1GB)))
	fmt.Fprintf(w, "| of it S3's | | %s |\n", money(up.Units[puts]*b.rates[puts]+up.Units[gets]*b.rates[gets]))
	fmt.Fprintf(w, "| storage, a month | none | %s |\n", money(b.rates[objectMonths]))
	fmt.Fprintf(w, "| a month's daily sweeps | a list for each 1,000 files and day | %s |\n", money(daysPerMonth*b.perFile(sweepStay)))
	fmt.Fprintf(w, "| download, out to the internet, without that | %s | %s |\n", times("GetObject", int(requests)), money(b.usd(downloadFar)-large*b.rates[outBytes]))
	fmt.Fprintf(w, "| the way out to the internet | | %s |\n", money(gb*b.rates[outBytes]))
	fmt.Fprintf(w, "| to the backup area, by the sweep | 1 CopyObject, 1 DeleteObject | %s |\n", money(b.perFile(sweepMove)))
	fmt.Fprintf(w, "\nAbortMultipartUpload and DeleteObject are free. `ferry up` asks for the URL of each part by itself, when it knows its checksum; a client that asks for 100 at once saves most of what is not S3's.\n")
}

// idleMonth is a month in which nobody calls.
func (b *book) idleMonth(w io.Writer, t template.Template) error {
	usd, err := b.month(t, nil)
	if err != nil {
		return err
	}
	all, err := kept(t, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n## A month in which nobody calls\n\nWith the parameters' defaults: storage, %s USD for what the resources are, and %s USD for the daily sweep of a stack without files.\n"+
		"Storage is %s USD for a GB-month of files, %s of the table, %s of its recovery, and %s of logs, compressed. Outside of the stack, SAM's bucket keeps the code of each deployment, some 100 MB.\n\n"+
		"| resources | number | USD a month | |\n|---|---|---|---|\n", money(usd), money(daysPerMonth*b.usd(sweepEmpty)),
		money(b.rates[objectMonths]), money(b.rates[tableMonths]), money(b.rates[recoverMonths]), money(b.rates[logMonths]))
	for _, i := range idles() {
		if n := len(all[i.kind]); n > 0 {
			fmt.Fprintf(w, "| `%s` | %d | 0 | %s |\n", i.kind, n, i.why)
		}
	}
	fmt.Fprintf(w, "\nWhat is off by default:\n\n| parameter | USD a month | |\n|---|---|---|\n")
	for _, o := range b.options() {
		with, err := b.month(t, o.parameters)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", o.name, money(with-usd+o.beside), o.note)
	}
	return nil
}

// perOperation are the calls and dollars of each operation.
func (b *book) perOperation(w io.Writer) {
	fmt.Fprintf(w, "\n## Each operation, 1,000 times\n\n"+
		"Read and write units are DynamoDB's for one, ms the functions' time (their own as measured, their waiting as assumed), KB what comes into the logs and what goes out.\n\n"+
		"| operation | functions | calls | read units | write units | ms | KB logged | KB out | USD |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range b.order {
		all := b.units(c)
		seconds := 0.0
		var functions []string
		for _, name := range slices.Sorted(maps.Keys(c.Runs)) {
			r := c.Runs[name]
			seconds += r.seconds(b.memory[name])
			functions = append(functions, times(name, r.Events))
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %.0f | %.1f | %.1f | %s |\n", c.Operation, strings.Join(functions, ", "), listed(callsOf(c, "")),
			quantity(all[reads]), quantity(all[writes]), seconds*1000, all[logBytes]/1024, all[outBytes]/1024, money(1000*b.usd(c.Operation)))
	}
	fmt.Fprintf(w, "\nA function's first event in a process reads the key of the links too, if it makes any: one GetParameter, free, and one request to KMS. The table's key costs each function that runs one request "+
		"to KMS every %d minutes at most.\n", keyMinutes)
}

func priceList(w io.Writer) {
	fmt.Fprintf(w, "\n## Prices\n\nThe link of each is AWS's page, whose price holds. Where the number was read is told beside it: those pages fill in most of their tables by a script, so that copies of them lack these.\n\n"+
		"| | USD | for | AWS's own words | read in |\n|---|---|---|---|---|\n")
	for _, p := range prices() {
		own, per := "no", quantity(p.per)
		if p.own {
			own = "yes"
		}
		if p.per == gb {
			per = "GB"
		}
		fmt.Fprintf(w, "| [%s](%s) | %s | %s | %s | %s |\n", p.unit, p.page, strconv.FormatFloat(p.usd, 'f', -1, 64), per, own, p.read)
	}
}

// comparison is what the README shows.
func (b *book) comparison(w io.Writer) error {
	fmt.Fprintf(w, "| a month, each file stored and downloaded once | Ferry on AWS | AWS Transfer Family | a small virtual machine | and the way out, for all |\n|---|---|---|---|---|\n")
	for _, l := range loads() {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", l.name, dollars(b.ferry(l)), dollars(b.transferFamily(l)), dollars(b.machine(l)), dollars(b.out(l)))
	}
	all := loads()
	n, err := b.even(all[len(all)-1])
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nUSD at list prices of %s as of %s, nothing free taken off. Ferry: gateway, functions, table, storage, mails with the polling of their queue, logs and the daily sweep, counted call by call. Transfer Family: one SFTP endpoint with its files in S3, no mails and no links.\n"+
		"The machine: a t4g.small with %d GB of disk and more for the files, a public address and SES, running `ferry serve`; its updates, backups and failures are yours.\n"+
		"Ferry is the dearer one where many small files keep a machine busy: from some %s files of 100 KB a month, if the machine carries them.\n\n"+
		"1,000 uploads of 100 KB cost %s USD, %s with one mail each, %s of it SES's. [Each operation, each resource while idle, and the prices' sources](infra/cost/README.md).\n",
		region, pricesDate, machineDisk, quantity(n), cents(1000*b.usd(upload)), cents(1000*b.usd(uploadMail)), cents(1000*b.rates[mails]))
	return nil
}

// callsOf are the calls of a count whose names begin so.
func callsOf(c *count, prefix string) map[string]int {
	all := map[string]int{}
	add := func(calls map[string]int) {
		for name, n := range calls {
			if strings.HasPrefix(name, prefix) {
				all[strings.TrimPrefix(name, prefix)] += n
			}
		}
	}
	add(c.Beside)
	for _, r := range c.Runs {
		add(r.Calls)
	}
	return all
}

// listed shows calls, each service named once.
func listed(calls map[string]int) string {
	text, last := "", ""
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		service, call, ok := strings.Cut(name, " ")
		if !ok || service == last {
			text += ", " + times(cmp.Or(call, name), calls[name])
			continue
		}
		text, last = text+"; "+service+" "+times(call, calls[name]), service
	}
	return cmp.Or(strings.TrimLeft(text, ",; "), "none")
}

func times(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s ×%d", name, n)
}

// money shows what is far below a dollar.
func money(usd float64) string {
	switch {
	case usd == 0:
		return "0"
	case usd < 0.00005:
		return fmt.Sprintf("%.6f", usd)
	}
	return fmt.Sprintf("%.4f", usd)
}

func cents(usd float64) string { return fmt.Sprintf("%.3f", usd) }

func dollars(usd float64) string { return fmt.Sprintf("%.2f", usd) }

// quantity shows a number with commas, and halves of units as they are.
func quantity(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
