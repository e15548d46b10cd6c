package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"ferry/shared/bundle"
	"ferry/shared/client"
)

// The exit codes are those of BSD's sysexits.
const (
	ExitOK         = 0
	ExitOther      = 1
	ExitUsage      = 64
	ExitDamaged    = 65
	ExitNoFile     = 66
	ExitUnknown    = 67
	ExitPort       = 69
	ExitExists     = 73
	ExitFull       = 74
	ExitBusy       = 75
	ExitRefused    = 76
	ExitPermission = 77
	ExitSettings   = 78
	ExitInterrupt  = 130 // as in shells
)

// ErrInterrupted means Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// coded is an error with its exit code.
type coded struct {
	code int
	error
}

func (e *coded) Unwrap() error { return e.error }

// WithCode gives an error an exit code; nil stays nil.
func WithCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &coded{code, err}
}

// HasCode reports whether an error has an exit code.
func HasCode(err error) bool {
	_, ok := errors.AsType[*coded](err)
	return ok
}

// Fail returns an error with an exit code.
func Fail(code int, format string, values ...any) error {
	return &coded{code, fmt.Errorf(format, values...)}
}

// Usage returns an error about what the user typed.
func Usage(format string, values ...any) error { return Fail(ExitUsage, format, values...) }

// ExitCode returns the exit code for an error.
func ExitCode(err error) int {
	if c, ok := errors.AsType[*coded](err); ok {
		return c.code
	}
	_, badBundle := errors.AsType[*bundle.Error](err)
	switch {
	case client.IsNetwork(err):
		return ExitPort
	case badBundle:
		return ExitDamaged
	case IsAny(err, ErrInterrupted):
		return ExitInterrupt
	case IsAny(err, client.ErrNoLogin, client.ErrPassword):
		return ExitPermission
	case IsAny(err, client.ErrDigest, client.ErrLost):
		return ExitDamaged
	case IsAny(err, client.ErrNotFound):
		return ExitNoFile
	case IsAny(err, client.ErrExists):
		return ExitExists
	case IsAny(err, client.ErrUnknownUser):
		return ExitUnknown
	case IsAny(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO):
		return ExitFull
	case IsAny(err, client.ErrChanged):
		return ExitBusy
	case IsAny(err, client.ErrAnswer, client.ErrUnnamed):
		return ExitRefused
	case IsAny(err, fs.ErrPermission, syscall.EROFS):
		return ExitPermission
	case IsAny(err, fs.ErrNotExist, syscall.ENOTDIR):
		return ExitSettings
	}
	switch client.StatusOf(err) {
	case 0:
		return ExitOther
	case 401, 403:
		return ExitPermission
	case 507:
		return ExitFull
	case 429, 500, 502, 503, 504:
		return ExitBusy
	}
	return ExitRefused
}

// IsAny reports whether an error is of one of these kinds.
func IsAny(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// Explain returns the one sentence that the user reads. It is one line, whatever a service says.
func Explain(err error) string {
	return Printable(strings.ReplaceAll(sentence(err), "\n", "; "))
}

// Explain is like the function Explain, but adds what was typed after a flag that the error names.
func (c Console) Explain(err error) string {
	text := Explain(err)
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return text
	}
	for flag := range strings.SplitSeq(flagsOf(e.Parameter), ": ") {
		if value := c.Typed[flag]; value != "" {
			text = strings.Replace(text, flag+": ", flag+" "+Printable(value)+": ", 1)
		}
	}
	return text
}

func sentence(err error) string {
	var path *os.PathError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &path) && strings.HasSuffix(err.Error(), path.Error()):
		return strings.TrimSuffix(
			err.Error(),
			path.Error(),
		) + path.Path + ": " + path.Err.Error()
	}
	_, explained := errors.AsType[*failure](err)
	if e, ok := errors.AsType[*client.Error](err); ok && !explained {
		return flagsOf(e.Parameter) + err.Error()
	}
	return err.Error()
}

// flagsOf names the flags that set parameters of a request, each followed by a colon.
func flagsOf(parameters string) (flags string) {
	named := map[string]string{
		"partSize": "part-size",
		"name":     "name",
		"title":    "title",
		"message":  "message",
		"bytes":    "bytes",
		"files":    "files",
	}
	for _, o := range new(client.Delivery).Options() {
		named[o.Name] = o.Flag
	}
	for name := range strings.SplitSeq(parameters, ", ") {
		if flag := named[name]; flag != "" {
			flags += "--" + flag + ": "
		}
	}
	return flags
}

// Failures collects the errors of a command on several things, some of which may
// succeed.
type Failures struct {
	Out   Console
	Meter *Meter // drawn at the same time; may be nil
	First error  // the caller prints it
}

// Add keeps the first error, and prints the others.
func (f *Failures) Add(name string, err error) {
	switch {
	case err == nil:
	case f.First == nil:
		f.First = Named(name, err)
	default:
		f.Meter.Print(f.Out.Err, "ferry: %s", f.Out.Explain(Named(name, err)))
	}
}

// Each calls f for each name until ctx ends. It continues after errors: it returns the first and
// prints the others. Unless done is empty, it is printed for each success, with the name filled in.
func Each(
	ctx context.Context,
	out Console,
	names []string,
	done string,
	f func(name string) error,
) error {
	failed := Failures{Out: out}
	return failed.Each(ctx, names, func(name string) error {
		err := f(name)
		if err == nil && done != "" {
			out.Tell(done+"\n", name)
		}
		return err
	})
}

// Each is like the function Each, but prints the failures beside a meter.
func (f *Failures) Each(ctx context.Context, names []string, do func(name string) error) error {
	for _, name := range names {
		err := ctx.Err()
		if err != nil {
			return cmp.Or(f.First, err)
		}
		f.Add(name, do(name))
	}
	return f.First
}

// Report prints the results as JSON, if wanted, and returns the first failure.
func Report(out Console, asJSON bool, results any, failed error) error {
	if asJSON {
		return cmp.Or(PrintJSON(out, results), failed)
	}
	return failed
}

// failure is the error of one of several things.
type failure struct {
	name string
	err  error
}

// Named returns the error of the thing with this name.
func Named(name string, err error) error { return &failure{name, err} }

// Error names the thing, once.
func (f *failure) Error() string {
	text, name := Explain(f.err), cmp.Or(Printable(f.name), `""`)
	if strings.HasPrefix(text, name+": ") || strings.HasSuffix(text, ": "+name) {
		return text
	}
	return name + ": " + text
}

func (f *failure) Unwrap() error { return f.err }
