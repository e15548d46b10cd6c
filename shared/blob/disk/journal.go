package disk

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
)

const (
	// maxJournaled is the largest object that goes through the journal. Above
	// it, writing the bytes twice costs more than a sync of the file's own.
	maxJournaled = 64 << 10

	halfSize = 16 << 20 // bytes of one half of the journal
	maxBatch = 2 << 20  // bytes that one write puts into it

	batchMagic  = "FERRYJ1\n"
	batchHeader = len(batchMagic) + 8 + 8 + 8 // magic, epoch, length, checksum
	entryHeader = 1 + 2 + 4                   // area, length of the key, length of the content
)

// errNoJournal says that an object has to be synced by itself.
var errNoJournal = errors.New("disk: the journal takes nothing")

// journal makes small objects durable many at a time. To sync a file that was
// just made costs a commit of the file system's own journal; here the bytes of
// all objects that wait are written once more, one after the other, into a file
// that has its blocks already, and one sync of that serves them all. The files
// themselves are left to the system to write.
//
// It has two halves. When one is full the other is used, and a sync of the
// whole file system makes what the first one holds needless. After a loss of
// power, Open makes the files again that the journal knows and the disk lost.
// An object that was deleted since comes back by that as one without a record,
// which the sweeper removes.
//
// A half is a row of batches, of which each says its epoch: the first batch
// with another epoch than the one before ends the row. What lies behind it is
// of earlier times, and the content of an object may look like a batch; so
// epochs are numbers that were never used and that nobody can guess.
type journal struct {
	file      *os.File // locked: one process has it
	flush     func() error
	flushTree func() error // of all that was written to the file system

	writing sync.Mutex // held while a batch is written

	mu     sync.Mutex
	next   *batch // takes objects
	spare  []byte // of a batch that was written
	half   int    // 0 or 1
	used   int64  // bytes of that half
	epoch  uint64
	busy   bool  // the other half is not needless yet
	failed error // for good
}

// batch is what one write and one sync make durable.
type batch struct {
	bytes []byte
	led   bool // somebody writes it, or is about to
	done  chan struct{}
	err   error
}

func newBatch(buffer []byte) *batch {
	return &batch{bytes: append(buffer[:0], make([]byte, batchHeader)...), done: make(chan struct{})}
}

// openJournal opens or makes the journal and hands what it holds to restore,
// after which it is empty. It fails if another process has it. flushTree makes
// durable all that the file system of a file was given.
func openJournal(path string, flushTree func(*os.File) error, restore func(area blob.Area, key string, content []byte) error) (_ *journal, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if lock(f) != nil { // another process has it
		return nil, errNoJournal
	}
	j := &journal{file: f, next: newBatch(nil), epoch: newEpoch()}
	j.flush = func() error { return syncData(f) }
	j.flushTree = func() error { return flushTree(f) }
	held := false
	for half := range 2 {
		some, err := replay(io.NewSectionReader(f, int64(half)*halfSize, halfSize), restore)
		if err != nil {
			return nil, fmt.Errorf("restoring objects from the journal: %w", err)
		}
		held = held || some
	}
	if held {
		if err := j.empty(); err != nil {
			return nil, err
		}
	}
	return j, j.allocate()
}

func newEpoch() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// allocate gives the file all its blocks, written, so that a later sync has
// only bytes to write. One of another size may have holes.
func (j *journal) allocate() error {
	info, err := j.file.Stat()
	if err != nil || info.Size() == 2*halfSize {
		return err
	}
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < 2*halfSize; at += int64(len(zeros)) {
		if _, err := j.file.WriteAt(zeros, at); err != nil {
			return errors.Join(errNoJournal, err, j.file.Truncate(0)) // no room
		}
	}
	return j.file.Sync()
}

// empty makes all files durable, and only then both halves empty.
func (j *journal) empty() error {
	if err := j.flushTree(); err != nil {
		return err
	}
	for half := range 2 {
		if _, err := j.file.WriteAt(make([]byte, batchHeader), int64(half)*halfSize); err != nil {
			return err
		}
	}
	return j.file.Sync()
}

// add returns when the object is durable, whose file must be written already.
// errNoJournal means that it is not, and has to be made so otherwise.
func (j *journal) add(area blob.Area, key string, content []byte) error {
	j.mu.Lock()
	if j.failed != nil || len(content) > maxJournaled || len(j.next.bytes)+entryHeader+len(key)+len(content) > maxBatch {
		j.mu.Unlock()
		return errNoJournal
	}
	b := j.next
	b.bytes = appendEntry(b.bytes, area, key, content)
	leads := !b.led
	b.led = true
	j.mu.Unlock()
	if !leads {
		<-b.done
		return b.err
	}
	j.writing.Lock() // meanwhile others join the batch
	defer j.writing.Unlock()
	b.err = j.write(b)
	close(b.done)
	return b.err
}

// write makes a batch durable and has a new one begun.
func (j *journal) write(b *batch) error {
	at, err := j.take(b)
	if err != nil {
		return err
	}
	_, err = j.file.WriteAt(b.bytes, at)
	if err == nil {
		err = j.flush()
	}
	j.mu.Lock()
	j.spare, b.bytes = b.bytes, nil
	j.mu.Unlock()
	if err != nil {
		// What the system could not write it may have dropped, and a later
		// success would say nothing of that.
		j.fail(err)
		return fmt.Errorf("writing the journal: %w", full(err))
	}
	return nil
}

// take closes a batch and finds its place.
func (j *journal) take(b *batch) (at int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next = newBatch(j.spare)
	j.spare = nil
	if j.failed != nil {
		return 0, errNoJournal
	}
	if j.used+int64(len(b.bytes)) > halfSize {
		if j.busy {
			return 0, errNoJournal
		}
		j.half, j.used, j.busy = 1-j.half, 0, true
		j.epoch++
		go j.retire()
	}
	at = int64(j.half)*halfSize + j.used
	j.used += int64(len(b.bytes))
	seal(b.bytes, j.epoch)
	return at, nil
}

// retire makes the half that was left needless.
func (j *journal) retire() {
	err := j.flushTree()
	if err != nil {
		j.fail(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.busy = err != nil
}

func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed = err
}

// close makes all files durable, and the journal empty.
func (j *journal) close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	failed := j.failed
	j.failed = os.ErrClosed
	j.mu.Unlock()
	if failed == nil {
		failed = j.empty()
	}
	return errors.Join(failed, j.file.Close())
}

func appendEntry(b []byte, area blob.Area, key string, content []byte) []byte {
	b = append(b, string(area)[0])
	b = binary.LittleEndian.AppendUint16(b, uint16(len(key)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(content)))
	b = append(b, key...)
	return append(b, content...)
}

// seal fills in a batch's header.
func seal(b []byte, epoch uint64) {
	at := copy(b, batchMagic)
	binary.LittleEndian.PutUint64(b[at:], epoch)
	binary.LittleEndian.PutUint64(b[at+8:], uint64(len(b)-batchHeader))
	binary.LittleEndian.PutUint64(b[at+16:], checksum(b))
}

// checksum covers all of a batch but the checksum itself.
func checksum(b []byte) uint64 {
	sum := crc64nvme.New()
	sum.Write(b[:batchHeader-8])
	sum.Write(b[batchHeader:])
	return sum.Sum64()
}

// replay hands all objects of a half to restore; held tells that it has some.
func replay(r io.Reader, restore func(area blob.Area, key string, content []byte) error) (held bool, err error) {
	var epoch uint64
	for {
		b, its, err := readBatch(r)
		if err != nil || b == nil || held && its != epoch {
			return held, err
		}
		held, epoch = true, its
		if err := replayBatch(b, restore); err != nil {
			return held, err
		}
	}
}

// readBatch returns nil for what is no whole batch: one that a loss of power
// cut off, or the end.
func readBatch(r io.Reader) (entries []byte, epoch uint64, err error) {
	header := make([]byte, batchHeader)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, 0, notEnd(err)
	}
	at := len(batchMagic)
	length := binary.LittleEndian.Uint64(header[at+8:])
	if string(header[:at]) != batchMagic || length > maxBatch {
		return nil, 0, nil
	}
	b := make([]byte, batchHeader+int(length))
	copy(b, header)
	if _, err := io.ReadFull(r, b[batchHeader:]); err != nil {
		return nil, 0, notEnd(err)
	}
	if binary.LittleEndian.Uint64(header[at+16:]) != checksum(b) {
		return nil, 0, nil
	}
	return b[batchHeader:], binary.LittleEndian.Uint64(header[at:]), nil
}

func notEnd(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}

func replayBatch(b []byte, restore func(area blob.Area, key string, content []byte) error) error {
	for len(b) > 0 {
		if len(b) < entryHeader {
			return errors.New("an entry is cut off")
		}
		area := blob.Files
		if b[0] == string(blob.Backup)[0] {
			area = blob.Backup
		}
		key, content := int(binary.LittleEndian.Uint16(b[1:])), int(binary.LittleEndian.Uint32(b[3:]))
		b = b[entryHeader:]
		if len(b) < key+content {
			return errors.New("an entry is cut off")
		}
		if err := restore(area, string(b[:key]), b[key:key+content]); err != nil {
			return err
		}
		b = b[key+content:]
	}
	return nil
}

// lazyJournal is opened when the first small object comes, so that a command
// which only reads needs no room for it.
type lazyJournal struct {
	once sync.Once
	open func() (*journal, error)
	j    *journal // nil where there is none
	err  error
}

func (l *lazyJournal) get() (*journal, error) {
	l.once.Do(func() {
		if l.j, l.err = l.open(); errors.Is(l.err, errNoJournal) {
			l.j, l.err = nil, nil
		}
	})
	return l.j, l.err
}

// prepareJournal restores at once what a journal holds, also where none is used:
// the folder may have been used otherwise before. Where none can be had each
// object is synced by itself.
func (s *Store) prepareJournal() error {
	path := filepath.Join(s.dir, "journal")
	s.journal.open = func() (*journal, error) { return openJournal(path, syncFileSystem, s.restore) }
	if _, err := os.Lstat(path); err == nil {
		if _, err := s.journal.get(); err != nil {
			return fmt.Errorf("opening the files: %w", full(err))
		}
	}
	if !s.noSync && s.ordered {
		return nil
	}
	err := s.Close() // nothing else begins one
	s.journal.j = nil
	return err
}

// restore makes an object again if the disk has lost it, or its bytes.
func (s *Store) restore(area blob.Area, key string, content []byte) error {
	path, err := s.path(context.Background(), area, key)
	if err != nil {
		return err
	}
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	aside := filepath.Join(s.tmp(), rand.Text())
	if err := os.WriteFile(aside, content, 0o600); err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	return os.Rename(aside, path)
}
