package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// connection is for one goroutine at a time.
type connection struct{ *sqlite.Conn }

func connect(path string, busy time.Duration, params string) (*connection, error) {
	conn, err := sqlite.OpenConn(dataSource(path, params), sqlite.OpenReadWrite|sqlite.OpenURI) // the URI's mode may only narrow it
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(busy)
	return &connection{conn}, nil
}

// prepare adds statements that are closed with the connection.
func (c *connection) prepare(queries map[string]*statement) error {
	for query, into := range queries {
		s, err := c.Conn.Prepare(query)
		if err != nil {
			return fmt.Errorf("preparing %q: %w", query, err)
		}
		*into = statement{s}
	}
	return nil
}

// run runs a query once. Only here may a query have several statements.
func (c *connection) run(query string, args ...any) error {
	for rest := strings.TrimSpace(query); rest != ""; {
		s, trailing, err := c.Conn.PrepareTransient(rest)
		if err != nil {
			return err
		}
		rest = strings.TrimSpace(rest[len(rest)-trailing:])
		if err := errors.Join(statement{s}.exec(args...), s.Finalize()); err != nil {
			return err
		}
	}
	return nil
}

// ask returns the columns of the only row of a query, as text.
func (c *connection) ask(query string) (all []string, err error) {
	err = sqlitex.ExecuteTransient(
		c.Conn,
		query,
		&sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
			for i := range row.ColumnCount() {
				all = append(all, row.ColumnText(i))
			}
			return nil
		}},
	)
	return all, err
}

// statement is a prepared statement.
type statement struct{ *sqlite.Stmt }

// blob returns a column of the current row that is a blob, or NULL.
func (s statement) blob(i int) []byte {
	if s.ColumnType(i) == sqlite.TypeNull {
		return nil
	}
	b := make([]byte, s.ColumnLen(i))
	s.ColumnBytes(i, b)
	return b
}

// exec runs the statement to its end.
func (s statement) exec(args ...any) error {
	return s.each(func(statement) bool { return true }, args...)
}

// each calls yield at each row, until yield returns false.
func (s statement) each(yield func(statement) bool, args ...any) (err error) {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			s.BindText(i+1, a)
		case []byte:
			s.BindBytes(i+1, a)
		case int64:
			s.BindInt64(i+1, a)
		case nil:
			s.BindNull(i + 1)
		}
	}
	defer func() {
		if reset := s.Reset(); err == nil {
			err = reset
		}
	}()
	for {
		if more, err := s.Step(); err != nil || !more {
			return err
		}
		if !yield(s) {
			return nil
		}
	}
}

// reader is a connection that reads.
type reader struct {
	*connection
	get, getTwo, forward, back, scan statement
	content, objects                 statement
}

const (
	forwardQuery = `SELECT sk, doc FROM items WHERE pk = ? AND sk > ? ORDER BY sk LIMIT ?`
	backQuery    = `SELECT sk, doc FROM items WHERE pk = ? AND sk < ? ORDER BY sk DESC LIMIT ?`
)

func openReader(path string, busy time.Duration) (*reader, error) {
	conn, err := connect(path, busy, "mode=ro")
	if err != nil {
		return nil, err
	}
	r := &reader{connection: conn}
	if err := conn.run("PRAGMA cache_size = -1024"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	err = conn.prepare(map[string]*statement{
		`SELECT (SELECT doc FROM items WHERE pk = ? AND sk = ?)`:                                                  &r.get,
		`SELECT (SELECT doc FROM items WHERE pk = ? AND sk = ?), (SELECT doc FROM items WHERE pk = ? AND sk = ?)`: &r.getTwo,
		`SELECT sk, doc, pk FROM items WHERE (pk, sk) > (?, ?) ORDER BY pk, sk LIMIT ?`:                           &r.scan,
		forwardQuery: &r.forward,
		backQuery:    &r.back,
		`SELECT content FROM blobs WHERE area = ? AND key = ?`:                                             &r.content,
		`SELECT key, length(content), modified FROM blobs WHERE area = ? AND key > ? ORDER BY key LIMIT ?`: &r.objects,
	})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// readers is a pool of readers.
type readers chan *reader

func openReaders(path string, busy time.Duration, n int) (readers, error) {
	p := make(readers, n)
	for i := range n {
		r, err := openReader(path, busy)
		if err != nil {
			return nil, errors.Join(err, p.close(i))
		}
		p <- r
	}
	return p, nil
}

// use lends a reader to f. A read is short and waits for nothing, so it is not
// worth a goroutine that watches the context.
func (p readers) use(ctx context.Context, f func(*reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case r, open := <-p:
		if !open {
			return ErrClosed
		}
		defer func() { p <- r }()
		return f(r)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close waits for the n readers, some of which may be lent. It may be called only
// once.
func (p readers) close(n int) error {
	var errs []error
	for range n {
		errs = append(errs, (<-p).Close())
	}
	close(p)
	return errors.Join(errs...)
}
