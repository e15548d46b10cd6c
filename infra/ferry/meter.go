package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	drawEvery = 200 * time.Millisecond
	tellEvery = 10 * time.Second // where there is no terminal to draw on
	barWidth  = 24
)

// meter shows how far a transfer has come: a bar on a terminal, and elsewhere a
// line from time to time. It is safe for concurrent use.
type meter struct {
	out      io.Writer
	terminal bool
	quiet    bool
	pause    *sync.Mutex // held while something else uses the terminal
	columns  int
	now      func() time.Time

	mu          sync.Mutex
	label       string
	done, total int64
	drawn       bool
	marks       []mark // of the last seconds, for the rate
	stop        chan struct{}
	stopped     sync.WaitGroup
}

type mark struct {
	at   time.Time
	done int64
}

func newMeter(out console, quiet bool) *meter {
	m := &meter{out: out.Err, quiet: quiet, terminal: isTerminal(out.Err), columns: 80, now: time.Now, stop: make(chan struct{})}
	if f, ok := out.Err.(interface{ Fd() uintptr }); ok && m.terminal {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			m.columns = w
		}
	}
	return m
}

// start begins to show; end ends it. pause may be nil.
func (m *meter) start(pause *sync.Mutex) {
	if m.quiet {
		return
	}
	m.pause = pause
	every := tellEvery
	if m.terminal {
		every = drawEvery
	}
	m.stopped.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-t.C:
				m.show()
			}
		}
	})
}

// add counts bytes that have gone, or with a negative number come to nothing.
func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
}

// expect adds to what there is to transfer.
func (m *meter) expect(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total += n
}

// name says what is under way.
func (m *meter) name(label string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.label = printable(label)
}

func (m *meter) show() {
	if m.pause != nil {
		if !m.pause.TryLock() {
			return
		}
		defer m.pause.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.total == 0 { // it is not known yet, or there is nothing to show
		return
	}
	m.marks = append(m.marks, mark{m.now(), m.done})
	if len(m.marks) > 50 {
		m.marks = m.marks[1:]
	}
	if !m.terminal {
		fmt.Fprintf(m.out, "%s: %s\n", m.label, m.numbers())
		return
	}
	m.drawn = true
	fmt.Fprint(m.out, "\r", m.bar(), "\x1b[K")
}

// bar is one line of at most the terminal's width.
func (m *meter) bar() string {
	filled := 0
	if m.total > 0 {
		filled = int(min(barWidth, max(0, m.done)*barWidth/m.total))
	}
	right := fmt.Sprintf(" [%s%s] %s", strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled), m.numbers())
	label := []rune(m.label)
	if room := m.columns - 1 - len(right); len(label) > room {
		label = label[:max(0, room)]
	}
	line := []rune(string(label) + right)
	return string(line[:min(len(line), max(0, m.columns-1))])
}

func (m *meter) numbers() string {
	percent := int64(100)
	if m.total > 0 {
		percent = max(0, m.done) * 100 / m.total
	}
	text := fmt.Sprintf("%d%% of %s", percent, size(m.total))
	rate := m.rate()
	if rate <= 0 {
		return text
	}
	text += fmt.Sprintf(", %s/s", size(int64(rate)))
	if left := m.total - m.done; left > 0 {
		text += ", " + span(time.Duration(float64(left)/rate*float64(time.Second))) + " left"
	}
	return text
}

// rate is in bytes a second, over the last marks.
func (m *meter) rate() float64 {
	if len(m.marks) < 2 {
		return 0
	}
	first, last := m.marks[0], m.marks[len(m.marks)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(last.done-first.done) / seconds
}

// span writes how long something takes, such as 1:05 or 2:03:00.
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

// say prints a line beside the bar.
func (m *meter) say(format string, args ...any) {
	if m.quiet {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	fmt.Fprintf(m.out, format+"\n", args...)
}

func (m *meter) clear() {
	if m.drawn {
		fmt.Fprint(m.out, "\r\x1b[K")
		m.drawn = false
	}
}

func (m *meter) end() {
	close(m.stop)
	m.stopped.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
}

// took is what is said of a transfer that has ended.
func took(n int64, d time.Duration) string {
	if d < time.Second {
		return size(n)
	}
	return fmt.Sprintf("%s in %s, %s/s", size(n), span(d), size(int64(float64(n)/d.Seconds())))
}
