package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"ferry/infra/assembly"
)

// report prints all figures, and returns those that are beyond their bounds.
func (f *figures) report(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "size (MB)\tstart (ms)\tratio\tanswer (ms)\tanswer (bytes)\tmemory (MiB)\t  function")
	var bad []error
	base := f.programs[0].median()
	for _, p := range f.programs {
		ratio := float64(p.median()) / float64(base)
		fmt.Fprintf(w, "%.1f\t%.1f\t%.2f\t%s  %s\n", float64(p.size)/1e6, float64(p.median().Microseconds())/1e3, ratio, p.answered(), p)
		if ratio > maxRatio {
			bad = append(bad, fmt.Errorf("%s takes %.2f times as long to start as an empty function, more than %.1f", p.name, ratio, maxRatio))
		}
		if p.size > maxSize {
			bad = append(bad, fmt.Errorf("%s has %d bytes, more than %d", p.name, p.size, maxSize))
		}
	}
	for _, u := range f.uploads {
		fmt.Fprintf(w, "\t\t\t\t\t%d\t  %s\n", u.peak>>20, u)
		if u.peak > assembly.MaxMemory {
			bad = append(bad, fmt.Errorf("%s takes %d bytes of memory, more than %d", u, u.peak, assembly.MaxMemory))
		}
	}
	fmt.Fprintf(w, "%.0f\t\t%.1f\t\t\t%d\t  at most\n", float64(maxSize)/1e6, maxRatio, assembly.MaxMemory>>20)
	return errors.Join(append(bad, w.Flush())...)
}

// answered is what is known of the answer to the function's event.
func (p *program) answered() string {
	if p.answer == nil {
		return "\t\t\t"
	}
	return fmt.Sprintf("%.0f\t%d\t%.0f\t", float64(p.answer.Took.Microseconds())/1e3, len(p.answer.Payload), float64(p.answer.Peak)/(1<<20))
}

// String names the program.
func (p *program) String() string {
	if p.name == control {
		return "(" + control + " function)"
	}
	return p.name
}

// String names the upload.
func (u upload) String() string {
	if u.form {
		return "the largest upload, as a form"
	}
	return "the largest upload, as a body alone"
}
