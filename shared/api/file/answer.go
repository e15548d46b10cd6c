package file

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
)

const (
	// verifiedFirst is the size in bytes up to which a whole file is verified before
	// the first byte is sent. A larger one is verified while it is sent.
	verifiedFirst = 4 << 20
	// smallFile is the size in bytes up to which a file is read and written rather
	// than sent by the kernel, which takes more system calls.
	smallFile = 32 << 10
	// sendSize is how many bytes of a larger file are verified and sent at a time.
	sendSize = 256 << 10
)

// content is what an answer sends.
type content struct {
	file   files.File // or a stand-in for a file of a bundle
	tag    string     // its ETag
	sum    []byte     // the checksum of its bytes
	newSum func() hash.Hash
	wrong  error // the error if the checksum is different
	body   io.ReadSeeker
	knower blob.Knower // for bodies whose checksum is a CRC64NVME; nil if nothing is known about the body
}

// answer receives the response of http.ServeContent. It holds back error responses, as they are
// not envelopes, and checks a whole file against its checksum. A range is not checked: its
// bytes have no checksum of their own.
type answer struct {
	http.ResponseWriter
	content
	get     bool // the request is a GET
	whole   bool // it is answered with the whole file
	known   bool // the file's bytes need not be verified
	mark    blob.Mark
	refused int   // the status that was held back; 0 if there is none
	err     error // what is wrong with the stored bytes
}

func (w *answer) WriteHeader(status int) {
	w.whole = w.get && status == http.StatusOK
	if status == http.StatusRequestedRangeNotSatisfiable ||
		status == http.StatusPreconditionFailed {
		w.refused = status
		return
	}
	w.known = w.whole && w.isKnown()
	if w.whole && !w.known && w.file.Length <= verifiedFirst {
		w.err = w.verify()
	}
	if w.err == nil {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *answer) Write(p []byte) (int, error) {
	if w.refused != 0 {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// ReadFrom lets the kernel send a file if its bytes are not needed here.
func (w *answer) ReadFrom(r io.Reader) (int64, error) {
	switch {
	case w.err != nil:
		return 0, w.err
	case w.known && w.file.Length > verifiedFirst:
		return w.sendKnown()
	case w.whole && w.file.Length > verifiedFirst:
		return w.send()
	case w.whole && inMemory(w.body):
		r = w.body // in one piece, if it is a bytes.Reader
	case w.whole:
		r = io.LimitReader(w.body, w.file.Length)
	}
	return io.Copy(w.ResponseWriter, r)
}

// verify checks all bytes. It reads a large file on this machine twice, and keeps all others in
// memory.
func (w *answer) verify() error {
	_, onDisk := w.body.(*os.File)
	if !inMemory(w.body) && (!onDisk || w.file.Length <= smallFile) {
		text := make([]byte, w.file.Length)
		if _, err := io.ReadFull(w.body, text); err != nil {
			return w.unread(err)
		}
		w.body = bytes.NewReader(text)
	}
	sum := w.newSum()
	if _, err := io.Copy(sum, w.body); err != nil {
		return w.unread(err)
	}
	if err := w.compare(sum); err != nil {
		return err
	}
	_, err := w.body.Seek(0, io.SeekStart)
	return err
}

func inMemory(body io.Reader) bool {
	_, ok := body.(interface{ Len() int })
	return ok
}

// send verifies the bytes while sending. If the checksum is wrong, it withholds the last block.
func (w *answer) send() (sent int64, err error) {
	sum, block := w.newSum(), make([]byte, sendSize)
	for sent < w.file.Length {
		b := block[:min(sendSize, w.file.Length-sent)]
		if _, err := io.ReadFull(w.body, b); err != nil {
			w.err = w.unread(err)
			return sent, w.err
		}
		sum.Write(b)
		if sent+int64(len(b)) == w.file.Length {
			w.err = w.compare(sum)
			if w.err != nil {
				return sent, w.err
			}
		}
		n, err := w.ResponseWriter.Write(b)
		sent += int64(n)
		if err != nil {
			return sent, err // the client is gone
		}
	}
	return sent, nil
}

// sendKnown lets the kernel send the bytes. Before the last block it checks whether the file is
// still in the same state. If not, the file may only have been moved, so all of it is verified.
func (w *answer) sendKnown() (sent int64, err error) {
	last := w.file.Length - sendSize
	sent, err = io.CopyN(w.ResponseWriter, w.body, last)
	if err == nil && !w.isKnown() {
		if _, err = w.body.Seek(0, io.SeekStart); err == nil {
			err = w.verify()
		}
		if err == nil {
			_, err = w.body.Seek(last, io.SeekStart)
		}
		w.err = err
	}
	if err == nil {
		var n int64
		n, err = io.CopyN(w.ResponseWriter, w.body, sendSize)
		sent += n
	}
	if err == io.EOF { // the file was cut
		w.err = w.unread(io.ErrUnexpectedEOF)
	}
	return sent, err
}

// isKnown reports whether the bytes need not be verified. It notes the file's state.
func (w *answer) isKnown() (known bool) {
	if w.knower != nil {
		w.mark, known = w.knower.Known(w.body, binary.BigEndian.Uint64(w.sum))
	}
	return known
}

// compare compares all bytes with their checksum. If the file's state has not changed since before
// they were read, they count as known from now on.
func (w *answer) compare(sum hash.Hash) error {
	if got := sum.Sum(nil); !bytes.Equal(got, w.sum) {
		return fmt.Errorf("%w: the checksum of %s is %x, but the record says %x",
			w.wrong, w.file.Blob, got, w.sum)
	}
	if before := w.mark; w.knower != nil && !w.isKnown() && w.mark == before {
		w.knower.Know(before)
	}
	return nil
}

func (w *answer) unread(err error) error {
	return fmt.Errorf("reading the bytes %s of a file: %w", w.file.Blob, err)
}

// fault returns why the file was not sent in full; nil if nothing is wrong, or the client went
// away.
func (w *answer) fault() error {
	switch w.refused {
	case http.StatusPreconditionFailed:
		return fault.New(
			fault.Precondition, "the file does not match the condition in the request",
		)
	case http.StatusRequestedRangeNotSatisfiable:
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", w.file.Length))
		return fault.New(fault.Unsatisfiable,
			"the range cannot be read, or lies outside the file, which has %d bytes", w.file.Length)
	}
	return w.err
}
