package cli

import (
	"bufio"
	"context"
	"io"
	"strconv"
	"strings"

	"ferry/shared/fault"
)

// ReadLine reads a password or a name, which is one line.
func ReadLine(ctx context.Context, in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(Interruptible(ctx, in), 4096)).ReadString('\n')
	return strings.TrimRight(line, "\r\n"), fault.Wrap(err, "reading the answer", io.EOF)
}

// FileID returns the id of a file that was typed.
func FileID(text string) (id int64, ok bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0
}

// Await runs f, or returns the context's error as soon as the context ends: a read
// from a terminal or a pipe cannot be stopped, and lasts until the process ends.
func Await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	var value T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		value, err = f()
	}()
	select {
	case <-ctx.Done():
		return *new(T), ctx.Err()
	case <-done:
		return value, err
	}
}

// Interruptible returns a reader that ends with its context, even while it waits. Its last read may
// still write to the buffer later.
func Interruptible(ctx context.Context, r io.Reader) io.Reader { return interruptible{ctx, r} }

type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(b []byte) (int, error) {
	return Await(i.ctx, func() (int, error) { return i.r.Read(b) })
}
