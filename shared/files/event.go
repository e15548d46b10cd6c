package files

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"time"

	"ferry/shared/table"

	"ferry/shared/envelope"
	"ferry/shared/notify"
)

// public is the file as events show it.
func (f File) public() notify.EventFile {
	crc, _ := hex.DecodeString(f.CRC64) // of this package's making
	out := notify.EventFile{
		Owner: f.Owner, ID: f.ID, Name: f.Name, Length: f.Length, Type: f.Type, Modified: f.Modified, Area: string(f.Area),
		CRC64NVME: base64.StdEncoding.EncodeToString(crc), SHA256: hex.EncodeToString(f.SHA256), Uploader: f.Uploader,
	}
	if f.Expires != 0 {
		out.Expires = time.Unix(f.Expires, 0).UTC().Format(time.RFC3339)
	}
	return out
}

// The key of a file's bytes is made anew each time that it is placed in an
// area, so that it tells this event from the next of the same file.

func uploaded(f File) notify.Event { return notify.Uploaded(f.public(), f.Blob) }

func restored(f File) notify.Event { return notify.Restored(f.public(), f.Blob) }

func deleted(reason notify.DeleteReason) func(File) notify.Event {
	return func(f File) notify.Event { return notify.Deleted(f.public(), reason, f.Blob) }
}

// downloaded returns the operation that records a download by a person.
func (s *Service) downloaded(ctx context.Context, l Link) ([]table.Op, error) {
	if s.Events == nil {
		return nil, nil
	}
	unique, err := s.unique()
	if err != nil {
		return nil, err
	}
	return s.Events.Ops(envelope.RequestID(ctx), notify.Downloaded(l.File.public(), l.item.Recipient, unique)), nil
}
