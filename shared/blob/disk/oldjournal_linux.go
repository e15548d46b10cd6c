package disk

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/minio/crc64nvme"
	"golang.org/x/sys/unix"

	"ferry/shared/blob"
)

// Until November 2026 small objects were files, and a file named "journal" made
// their bytes durable: after a loss of power only the journal may have them. It
// has two halves, each a sequence of batches of one epoch.
const (
	oldHalf        = 16 << 20
	oldMagic       = "FERRYJ1\n"
	oldBatchHeader = len(oldMagic) + 8 + 8 + 8 // magic, epoch, length, checksum
)

// replayJournal turns the objects of an old journal into durable files and
// removes the journal, unless a process of that time is still using it.
func (s *Store) replayJournal() error {
	path := filepath.Join(s.dir, "journal")
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil
	}
	all, err := io.ReadAll(f) // not by name: another process may just have removed it
	if err != nil {
		return err
	}
	for half := range slices.Chunk(all, oldHalf) {
		if err := replay(half, s.restore); err != nil {
			return fmt.Errorf("restoring objects from the journal: %w", err)
		}
	}
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return os.NewSyscallError("syncfs", err)
	}
	return os.RemoveAll(path) // no error if another process has removed it
}

// replay hands all objects of a half to restore. It stops at the first batch that
// is not whole: it was cut off by a loss of power, or is the end.
func replay(all []byte, restore func(area blob.Area, key string, content []byte) error) error {
	for first, epoch := true, uint64(0); len(all) >= oldBatchHeader; first = false {
		at := len(oldMagic)
		its, length := binary.LittleEndian.Uint64(all[at:]), binary.LittleEndian.Uint64(all[at+8:])
		if string(all[:at]) != oldMagic || !first && its != epoch || length > uint64(len(all)-oldBatchHeader) {
			return nil
		}
		end := oldBatchHeader + int(length)
		sum := crc64nvme.Update(crc64nvme.Checksum(all[:oldBatchHeader-8]), all[oldBatchHeader:end])
		if binary.LittleEndian.Uint64(all[at+16:]) != sum {
			return nil
		}
		if err := replayBatch(all[oldBatchHeader:end], restore); err != nil {
			return err
		}
		all, epoch = all[end:], its
	}
	return nil
}

func replayBatch(b []byte, restore func(area blob.Area, key string, content []byte) error) error {
	for batch := bytes.NewBuffer(b); batch.Len() > 0; {
		var entry struct {
			Area    byte
			Key     uint16 // length
			Content uint32 // length
		}
		err := binary.Read(batch, binary.LittleEndian, &entry)
		key, content := batch.Next(int(entry.Key)), batch.Next(int(entry.Content))
		if err != nil || len(key) < int(entry.Key) || len(content) < int(entry.Content) {
			return errors.New("an entry is cut off")
		}
		area := blob.Files
		if entry.Area == string(blob.Backup)[0] {
			area = blob.Backup
		}
		if err := restore(area, string(key), content); err != nil {
			return err
		}
	}
	return nil
}

// restore writes an object again, since the disk may have lost it or its bytes.
// If it has been deleted since, it has no record, and the sweeper removes it.
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
