// Command bench compares `ferry serve` and the functions with controls in the same run: a bare Go
// server that does only what is needed for each byte, and a function that does nothing. The machine
// may be noisy. What counts is the ratio, the median of rounds in which all are measured in turn,
// and the server's CPU time per request.
//
//	go run ./infra/bench [-quick] [-only NAME,...] [-old PATH]
//
// PATH is another build of ferry, which is measured in the same rounds. Nothing imports this
// package; start reading with main, then measure.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"ferry/infra/stack/emulated"
	"ferry/shared/web/browsertest"
)

func main() {
	if len(os.Args) == 5 && os.Args[1] == control {
		runControl(os.Args[2], os.Args[3], os.Args[4] == "on")
		return
	}
	b := &bench{rounds: 5, large: 1 << 30, requests: 3000, area: 100_000}
	quick := flag.Bool(
		"quick",
		false,
		"smaller files and fewer rounds: shows that it works, but measures little",
	)
	only := flag.String(
		"only",
		"",
		"measure only these: large, small, list, nosync, sessions, notices, bundles, visitors, pages, start",
	)
	old := flag.String("old", "", "another ferry binary to measure in the same rounds")
	flag.Parse()
	if *quick {
		b = &bench{rounds: 2, large: 64 << 20, requests: 300, area: 5_000}
	}
	var stop context.CancelFunc
	b.ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.all(*only, *old); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench says how much is measured, and holds what the measurements share.
type bench struct {
	rounds   int
	large    int64 // bytes of a large file; the one uploaded in parts is four times as large
	requests int   // small requests in a round
	area     int   // files in the large area of the list

	ctx     context.Context
	dir     string
	started []*process // by the current measurement
}

// failure ends the run: check and must panic with it, and all returns it.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// measurement is something to measure for ferry and, in rounds, for a control. Without rounds it is
// measured once, and has no control. If it sends small requests, the server's CPU time is reported too.
type measurement struct {
	name, what, unit, target string
	rounds, requests         int
	start                    func(*subject) // sets op
}

// subject is a program that is measured.
type subject struct {
	*process
	name, tool          string // control, ferry or old; and the ferry binary
	op                  func() float64
	values, ratios, cpu []float64 // one per round; ratios are to the first subject
	note                string    // printed with the server's memory
}

func (b *bench) all(only, old string) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
		default:
			panic(f)
		}
	}()
	b.dir = must(os.MkdirTemp(os.Getenv("FERRY_BENCH_DIR"), "ferry-bench-"))
	defer os.RemoveAll(b.dir)
	defer b.end()
	wanted := func(name string) bool {
		return only == "" || slices.Contains(strings.Split(only, ","), name)
	}
	tools := map[string]string{"ferry": filepath.Join(b.dir, "ferry"), "old": old}
	check(emulated.Build(b.ctx, ".", tools["ferry"], "./infra/ferry"))
	all := append(b.measurements(), b.bundles()...)
	if wanted("pages") {
		all = append(all, b.pages()...)
		defer browsertest.End()
	}
	if wanted("start") {
		all = append(all, b.functions()...)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "MEASUREMENT\tOF\tMEDIAN\tRATIO\tAIM\tCPU\tMEMORY")
	for _, m := range slices.DeleteFunc(all, func(m measurement) bool { return !wanted(m.name) }) {
		fmt.Fprintf(os.Stderr, "measuring %s ...\n", m.what)
		var subjects []*subject
		for _, name := range []string{control, "ferry", "old"} {
			if name == control && m.rounds > 0 ||
				tools[name] != "" && (name == "ferry" || m.name != "start") {
				subjects = append(subjects, &subject{name: name, tool: tools[name]})
				m.start(subjects[len(subjects)-1])
			}
		}
		m.run(subjects)
		m.print(w, subjects)
		if ratio := median(subjects[len(subjects)-1].ratios); m.name == "start" && ratio > 2.5 {
			err = errors.Join(
				err,
				fmt.Errorf("%s takes %.2f times as long as that of an empty function",
					m.what, ratio),
			)
		}
		b.end()
	}
	return errors.Join(err, w.Flush())
}

// run measures all subjects in turn. The first round does not count, unless it is the
// only one.
func (m measurement) run(subjects []*subject) {
	for round := range m.rounds + 1 {
		for _, s := range subjects {
			before := s.cpuTime()
			value := s.op()
			if round > 0 || m.rounds == 0 {
				s.values = append(s.values, value)
				s.ratios = append(s.ratios, value/subjects[0].values[len(s.values)-1])
				s.cpu = append(s.cpu, (s.cpuTime()-before)/float64(max(1, m.requests)))
			}
		}
	}
}

func (m measurement) print(w *tabwriter.Writer, subjects []*subject) {
	for i, s := range subjects {
		row := []string{
			m.what,
			s.name,
			fmt.Sprintf("%.1f %s", median(s.values), m.unit),
			"",
			"",
			"",
			s.note,
		}
		if i > 0 {
			row[3] = fmt.Sprintf("%.2f", median(s.ratios))
		}
		if s.name == "ferry" {
			row[4] = m.target
		}
		if m.requests > 0 {
			row[5] = fmt.Sprintf("%.0f µs", median(s.cpu))
		}
		if s.process != nil {
			row[6] = fmt.Sprintf("%d MiB%s", s.memory("VmHWM:")>>20, s.note)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
		m.what = ""
	}
}

func median(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }
