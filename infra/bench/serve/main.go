// Command serve measures ferry serve against a control in the same run: a bare
// Go server that does with each byte only what cannot be left out. The machine
// may be noisy: what counts is the ratio, the median of pairs measured in turn.
//
//	go run ./infra/bench/serve [-quick] [-only NAME,...]
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "control" {
		control(os.Args[2], os.Args[3], os.Args[4] == "sync")
		return
	}
	quick := flag.Bool("quick", false, "smaller files and fewer rounds: shows that it works, measures little")
	only := flag.String("only", "", "comma-separated names of the measurements to do")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, *quick, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// scale is how much is measured.
type scale struct {
	Rounds   int
	Large    int64 // bytes of a large file
	Requests int   // small requests in a round
	Workers  int
	Area     int // files in the large area of the list

	Huge       int64 // bytes of a file that goes up in parts
	HugeRounds int
	Killed     int64 // bytes of a file whose upload is interrupted
	Kills      int
}

func scaleOf(quick bool) scale {
	if quick {
		return scale{Rounds: 2, Large: 64 << 20, Requests: 300, Workers: 16, Area: 5_000, Huge: 256 << 20, HugeRounds: 1, Killed: 256 << 20, Kills: 4}
	}
	return scale{Rounds: 5, Large: 1 << 30, Requests: 3000, Workers: 16, Area: 100_000, Huge: 4 << 30, HugeRounds: 3, Killed: 2 << 30, Kills: 10}
}

// row is a line of the table that is printed.
type row struct {
	what           string
	ferry, control float64 // median
	unit           string
	ratio          float64 // median of the pairs' ratios; 0 if there is no control
	target         string
	memory         int64 // peak of the ferry process in bytes, 0 if not told
}

func measure(ctx context.Context, quick bool, only string) error {
	b, err := newBench(ctx, scaleOf(quick))
	if err != nil {
		return err
	}
	defer b.close()
	all := []struct {
		name  string
		run   func() ([]row, error)
		large bool // it leaves few files, and much in them
	}{
		{"large", b.large, true},
		{"small", b.small, false},
		{"list", b.list, false},
		{"nosync", b.nosync, true},
		{"sessions", b.sessions, true},
		{"kills", b.kills, true},
		{"parts", b.parts, false},
		{"notices", b.notices, false},
	}
	var rows []row
	for _, m := range all {
		if only != "" && !slices.Contains(strings.Split(only, ","), m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s ...\n", m.name)
		found, err := m.run()
		if err == nil && m.large {
			err = b.clear()
		}
		if err != nil {
			return fmt.Errorf("measuring %s: %w", m.name, err)
		}
		rows = append(rows, found...)
	}
	return printRows(rows)
}

func printRows(rows []row) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "MEASUREMENT\tFERRY\tCONTROL\tUNIT\tRATIO\tTARGET\tPEAK MEMORY")
	for _, r := range rows {
		ratio, control, memory := "-", "-", "-"
		if r.ratio > 0 {
			ratio, control = fmt.Sprintf("%.2f", r.ratio), fmt.Sprintf("%.0f", r.control)
		}
		if r.memory > 0 {
			memory = fmt.Sprintf("%.0f MiB", float64(r.memory)/(1<<20))
		}
		fmt.Fprintf(w, "%s\t%.0f\t%s\t%s\t%s\t%s\t%s\n", r.what, r.ferry, control, r.unit, ratio, cmp.Or(r.target, "-"), memory)
	}
	return w.Flush()
}

// pairs measures a and b in turn and returns the medians, and the median of
// the ratios a/b. One round before is not counted.
func pairs(rounds int, a, b func() (float64, error)) (ma, mb, ratio float64, err error) {
	var as, bs, ratios []float64
	for i := range rounds + 1 {
		x, err := a()
		if err != nil {
			return 0, 0, 0, err
		}
		y, err := b()
		if err != nil {
			return 0, 0, 0, fmt.Errorf("control: %w", err)
		}
		if i > 0 {
			as, bs, ratios = append(as, x), append(bs, y), append(ratios, x/y)
		}
	}
	return median(as), median(bs), median(ratios), nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
