package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

const (
	drawEvery = 200 * time.Millisecond
	tellEvery = 10 * time.Second // without a terminal to draw on
	barWidth  = 24
)

// Meter shows the progress of a transfer: as a bar on a terminal, elsewhere as a line now and then.
// For several files it shows the total, and below it the file under way. It is safe for concurrent use. While
// something else uses the terminal, it is locked.
type Meter struct {
	out      Screen
	terminal bool
	columns  int
	now      func() time.Time

	file        atomic.Pointer[underWay]
	done, total atomic.Int64
	Files       atomic.Int64 // how many in all
	Ended       atomic.Int64 // how many of the files have ended
	Growing     bool         // total grows with each file, so it is unknown how much is left
	Earlier     atomic.Int64 // how much of done an earlier run has transferred

	sync.Mutex // held while anything uses the terminal
	drawn      bool
	marks      []mark // of the last seconds, for the rate
	stop       chan struct{}
	stopped    sync.WaitGroup
}

// underWay is a file in progress.
type underWay struct {
	label       string
	from, bytes int64 // done when it began, and its size; bytes is 0 if several are in progress
}

type mark struct {
	at   time.Time
	done int64 // in this run
}

func NewMeter(out Console, quiet bool) *Meter {
	m := &Meter{
		out:      out.Err,
		terminal: IsTerminal(out.Err.Raw),
		columns:  80,
		now:      time.Now,
		stop:     make(chan struct{}),
	}
	if quiet {
		m.out, m.terminal = Screen{Raw: io.Discard}, false
	}
	if m.terminal {
		if w, _, err := term.GetSize(int(out.Err.Raw.(*os.File).Fd())); err == nil && w > 0 {
			m.columns = w
		}
	}
	return m
}

// Start begins to show progress; end stops it.
func (m *Meter) Start() {
	every := tellEvery
	if m.terminal {
		every = drawEvery
	}
	m.stopped.Go(func() {
		for {
			select {
			case <-m.stop:
				return
			case <-time.After(every):
				m.show()
			}
		}
	})
}

// Add counts transferred bytes; a negative number takes back bytes that were lost.
func (m *Meter) Add(n int64) { m.done.Add(n) }

// Had counts bytes that an earlier run has transferred. They do not count for the rate.
func (m *Meter) Had(n int64) {
	m.Earlier.Add(n)
	m.Add(n)
}

// Expect adds to the number of bytes to transfer.
func (m *Meter) Expect(n int64) { m.total.Add(n) }

// Begin sets the file in progress. bytes is 0 if several files are in progress.
func (m *Meter) Begin(name string, bytes int64) {
	m.file.Store(&underWay{Printable(name), m.done.Load(), bytes})
}

func (m *Meter) show() {
	m.Lock()
	defer m.Unlock()
	done, total := max(0, m.done.Load()), m.total.Load()
	if total == 0 { // not known yet, or nothing to show
		return
	}
	m.marks = append(m.marks, mark{m.now(), done - m.Earlier.Load()})
	if len(m.marks) > 50 {
		m.marks = m.marks[1:]
	}
	label, below := m.labels(done)
	numbers := m.numbers(done, total)
	if !m.terminal {
		if below != "" {
			below = "; " + below
		}
		fmt.Fprintf(m.out, "%s: %s%s\n", label, numbers, below)
		return
	}
	m.drawn = true
	fmt.Fprintf(m.out.Raw, "\r%s\x1b[K", m.bar(label, numbers, done, total))
	if below != "" {
		fmt.Fprintf(m.out.Raw, "\n  %.*s\x1b[K\x1b[1A", max(0, m.columns-3), below)
	}
}

// labels returns what the progress is about, and the text below it: the file under way, if there are several.
func (m *Meter) labels(done int64) (label, below string) {
	file := m.file.Load()
	if file == nil {
		file = &underWay{}
	}
	if m.Files.Load() < 2 {
		return file.label, ""
	}
	below = file.label
	if file.bytes > 0 {
		below = fmt.Sprintf("%d%% of %s  %s",
			min(100, max(0, done-file.from)*100/file.bytes), Size(file.bytes), below)
	}
	return fmt.Sprintf("%d of %d files", m.Ended.Load(), m.Files.Load()), below
}

// bar returns the progress line. The label is cut to fit.
func (m *Meter) bar(label, numbers string, done, total int64) string {
	bar := ": " + numbers
	if !m.Growing {
		filled := strings.Repeat("=", int(min(barWidth, done*barWidth/total)))
		bar = fmt.Sprintf(" [%-*s] %s", barWidth, filled, numbers)
	}
	bar = fmt.Sprintf("%.*s%s", max(0, m.columns-1-len(bar)), label, bar)
	return fmt.Sprintf("%.*s", m.columns-1, bar)
}

func (m *Meter) numbers(done, total int64) string {
	text := fmt.Sprintf("%d%% of %s", done*100/total, Size(total))
	if m.Growing {
		text = Size(done)
	}
	first, last := m.marks[0], m.marks[len(m.marks)-1]
	rate := float64(last.done-first.done) / max(last.at.Sub(first.at).Seconds(), 0.001) // bytes a second
	if rate <= 0 {
		return text
	}
	text += fmt.Sprintf(", %s/s", Size(int64(rate)))
	if left := total - done; left > 0 && !m.Growing {
		text += ", " + span(time.Duration(float64(left)/rate*float64(time.Second))) + " left"
	}
	return text
}

// span formats a duration, such as 1:05 or 2:03:00.
func span(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	if s >= 100*3600 {
		return fmt.Sprintf("%d days", s/86400)
	}
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Say prints a line beside the bar, unless the meter is quiet.
func (m *Meter) Say(format string, args ...any) { m.Print(m.out, format, args...) }

// Print prints a line without mixing it with the bar. The meter may be nil.
func (m *Meter) Print(to io.Writer, format string, args ...any) {
	if m != nil {
		m.Lock()
		defer m.Unlock()
		m.Clear()
	}
	fmt.Fprint(to, filled(format+"\n", args))
}

// Clear removes the bar. The caller holds the lock.
func (m *Meter) Clear() {
	if m.drawn {
		fmt.Fprint(m.out.Raw, "\r\x1b[J") // the lines below too
		m.drawn = false
	}
}

func (m *Meter) End() {
	close(m.stop)
	m.stopped.Wait()
	m.Lock()
	defer m.Unlock()
	m.Clear()
}

// Timing returns a function that describes the transfer of n bytes that begins now.
func (m *Meter) Timing() func(n int64) string {
	begin, before := time.Now(), m.Earlier.Load()
	return func(n int64) string {
		return took(n, n-(m.Earlier.Load()-before), time.Since(begin))
	}
}

// took describes a finished transfer of n bytes, of which some were transferred in this run.
func took(n, now int64, d time.Duration) string {
	what := Size(n)
	if d < time.Second {
		return what
	}
	if now < n {
		what += ", " + Size(max(0, now)) + " of it now"
	}
	return fmt.Sprintf("%s in %s, %s/s",
		what, span(d), Size(int64(float64(max(0, now))/d.Seconds())))
}
