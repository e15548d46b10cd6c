package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"modernc.org/sqlite"
)

// connection uses the driver without database/sql, which would be a third of the
// work for such short statements. It is for one goroutine at a time.
type connection struct {
	driver.Conn
	prepared []statement
}

func connect(path string, busy time.Duration, params string) (*connection, error) {
	conn, err := new(sqlite.Driver).Open(dataSource(path, busy, params))
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn}, nil
}

// prepare adds statements that are closed with the connection.
func (c *connection) prepare(queries map[string]*statement) error {
	for query, into := range queries {
		s, err := c.Conn.Prepare(query)
		if err != nil {
			return fmt.Errorf("preparing %q: %w", query, err)
		}
		*into = statement{s}
		c.prepared = append(c.prepared, *into)
	}
	return nil
}

// Close closes the statements too. While there are any, SQLite keeps the
// connection half open and its log beside the file.
func (c *connection) Close() error {
	var errs []error
	for _, s := range c.prepared {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.Conn.Close())...)
}

// run runs a query once. Only here may a query have several statements.
func (c *connection) run(ctx context.Context, query string, args ...driver.Value) error {
	s, err := c.Conn.Prepare(query)
	if err != nil {
		return err
	}
	_, err = s.(driver.StmtExecContext).ExecContext(ctx, named(args))
	return errors.Join(err, s.Close())
}

// ask returns the columns of the only row of a query.
func (c *connection) ask(query string) (row []driver.Value, err error) {
	s, err := c.Conn.Prepare(query)
	if err != nil {
		return nil, err
	}
	err = statement{s}.each(func(columns []driver.Value) bool {
		row = columns
		return false
	})
	return row, errors.Join(err, s.Close())
}

// statement is a prepared statement.
type statement struct{ driver.Stmt }

func named(args []driver.Value) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i, a := range args {
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return all
}

// exec runs the statement and returns how many rows it has changed.
func (s statement) exec(args ...driver.Value) (int64, error) {
	result, err := s.Stmt.(driver.StmtExecContext).ExecContext(context.Background(), named(args))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// each calls yield with the columns of each row, until yield returns false. They
// are strings, int64s, and byte slices that yield may keep.
func (s statement) each(yield func([]driver.Value) bool, args ...driver.Value) (err error) {
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(context.Background(), named(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(columns); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if !yield(columns) {
			return nil
		}
	}
}

// bytesOf reads a column that is a blob, or NULL.
func bytesOf(v driver.Value) []byte {
	b, _ := v.([]byte)
	return b
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
	conn, err := connect(path, busy, "mode=ro&_pragma=cache_size(-1024)")
	if err != nil {
		return nil, err
	}
	r := &reader{connection: conn}
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
type readers struct{ idle chan *reader }

func openReaders(path string, busy time.Duration, n int) (*readers, error) {
	p := &readers{idle: make(chan *reader, n)}
	for i := range n {
		r, err := openReader(path, busy)
		if err != nil {
			return nil, errors.Join(err, p.close(i))
		}
		p.idle <- r
	}
	return p, nil
}

// use lends a reader to f. A read is short and waits for nothing, so it is not
// worth a goroutine that watches the context.
func (p *readers) use(ctx context.Context, f func(*reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case r, open := <-p.idle:
		if !open {
			return ErrClosed
		}
		defer func() { p.idle <- r }()
		return f(r)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close waits for the n readers, some of which may be lent. It may be called only
// once.
func (p *readers) close(n int) error {
	var errs []error
	for range n {
		errs = append(errs, (<-p.idle).Close())
	}
	close(p.idle)
	return errors.Join(errs...)
}
