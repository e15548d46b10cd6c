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

// statement is a prepared query, spoken to without database/sql between: for
// reads as short as these that would be a third of the work. It is for one
// goroutine at a time.
type statement struct{ driver.Stmt }

func prepare(conn driver.Conn, query string) (statement, error) {
	s, err := conn.Prepare(query)
	if err != nil {
		return statement{}, fmt.Errorf("preparing %q: %w", query, err)
	}
	return statement{s}, nil
}

// each calls yield with the columns of each row: strings, int64s, and bytes
// that are the caller's to keep. yield returns false to end.
func (s statement) each(yield func([]driver.Value) bool, args ...driver.Value) (err error) {
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(context.Background(), named)
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
	conn                             driver.Conn
	get, getTwo, forward, back, scan statement
}

const (
	getQuery     = `SELECT doc FROM items WHERE pk = ? AND sk = ?`
	getTwoQuery  = `SELECT (SELECT doc FROM items WHERE pk = ? AND sk = ?), (SELECT doc FROM items WHERE pk = ? AND sk = ?)`
	forwardQuery = `SELECT sk, doc FROM items WHERE pk = ? AND sk > ? ORDER BY sk LIMIT ?`
	backQuery    = `SELECT sk, doc FROM items WHERE pk = ? AND sk < ? ORDER BY sk DESC LIMIT ?`
	scanQuery    = `SELECT sk, doc, pk FROM items WHERE (pk, sk) > (?, ?) ORDER BY pk, sk LIMIT ?`
)

func openReader(path string, busy time.Duration) (_ *reader, err error) {
	conn, err := new(sqlite.Driver).Open(dataSource(path, busy, "mode=ro&_pragma=cache_size(-1024)"))
	if err != nil {
		return nil, err
	}
	r := &reader{conn: conn}
	for query, s := range map[string]*statement{
		getQuery: &r.get, getTwoQuery: &r.getTwo, forwardQuery: &r.forward, backQuery: &r.back, scanQuery: &r.scan,
	} {
		if *s, err = prepare(conn, query); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

// close closes the statements too: SQLite keeps a connection half open, and
// its log beside the file, while it has some.
func (r *reader) close() error {
	var errs []error
	for _, s := range []statement{r.get, r.getTwo, r.forward, r.back, r.scan} {
		if s.Stmt != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, r.conn.Close())...)
}

// readers is a pool of them.
type readers struct {
	idle chan *reader
	n    int
}

func openReaders(path string, busy time.Duration, n int) (*readers, error) {
	p := &readers{idle: make(chan *reader, n)}
	for range n {
		r, err := openReader(path, busy)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.idle <- r
		p.n++
	}
	return p, nil
}

// use lends a reader to f. A read waits for nobody and is short, so it is not
// worth a goroutine that watches the context meanwhile.
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

// close waits for the readers that are lent. It may be called once.
func (p *readers) close() error {
	var errs []error
	for range p.n {
		errs = append(errs, (<-p.idle).close())
	}
	close(p.idle)
	return errors.Join(errs...)
}
