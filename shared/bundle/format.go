package bundle

import (
	"encoding/binary"
	"time"
)

// The archive's numbers, as in APPNOTE.
const (
	localSignature   = 0x04034b50 // 4.3.7
	recordSignature  = 0x02014b50 // 4.3.12
	end64Signature   = 0x06064b50 // 4.3.14
	locatorSignature = 0x07064b50 // 4.3.15
	endSignature     = 0x06054b50 // 4.3.16

	recordLength  = 46 // of a record of the directory, without its path and extra fields
	endLength     = 22
	end64Length   = 56
	locatorLength = 20

	plain    = 20        // version needed, 4.4.3.2
	zip64    = 45        // version needed with ZIP64
	madeBy   = 3<<8 | 45 // Unix, 4.4.2
	utf8Flag = 1 << 11   // 4.4.4
	stored   = 0         // 4.4.5

	zip64Field = 0x0001 // 4.5.3
	timeField  = 0x5455 // 4.6.1, as Info-ZIP defines it
	timeLength = 9      // the whole field
	modifiedAt = 1      // a flag of the field: it has the modification time

	// wide in a field of 32 bits says that the value is in the ZIP64 field. All values from it on
	// are there.
	wide = 0xFFFFFFFF

	fileMode       = 0o100644
	executableMode = 0o100755
	folderMode     = 0o040755
	folderBit      = 0x10 // of MS-DOS
)

// local returns the entry's local header.
func (e Entry) local() []byte {
	large := zip64Extra(e.Length, e.Length)
	b := binary.LittleEndian.AppendUint32(nil, localSignature)
	b = e.appendCommon(b, len(large))
	return e.appendNames(b, large)
}

// record returns the entry's record in the directory.
func (e Entry) record() []byte {
	large := zip64Extra(e.Length, e.Length, e.Header)
	b := binary.LittleEndian.AppendUint32(nil, recordSignature)
	b = binary.LittleEndian.AppendUint16(b, madeBy)
	b = e.appendCommon(b, len(large))
	b = append(b, make([]byte, 6)...) // comment length, disk, internal attributes
	b = binary.LittleEndian.AppendUint32(b, e.attributes())
	b = binary.LittleEndian.AppendUint32(b, narrow(e.Header))
	return e.appendNames(b, large)
}

// appendCommon appends what local header and record have in common. large is the length of
// the ZIP64 field.
func (e Entry) appendCommon(b []byte, large int) []byte {
	version := uint16(plain)
	if large > 0 {
		version = zip64
	}
	clock, date := dosTime(e.Modified)
	for _, field := range []uint16{version, utf8Flag, stored, clock, date} {
		b = binary.LittleEndian.AppendUint16(b, field)
	}
	for _, field := range []uint32{e.CRC32, narrow(e.Length), narrow(e.Length)} {
		b = binary.LittleEndian.AppendUint32(b, field)
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(e.Path)))
	return binary.LittleEndian.AppendUint16(b, uint16(timeLength+large))
}

// appendNames appends the path and the extra fields.
func (e Entry) appendNames(b, large []byte) []byte {
	b = append(b, e.Path...)
	b = binary.LittleEndian.AppendUint16(b, timeField)
	b = binary.LittleEndian.AppendUint16(b, timeLength-4)
	b = append(b, modifiedAt)
	b = binary.LittleEndian.AppendUint32(b, uint32(e.Modified.Unix()))
	return append(b, large...)
}

// attributes returns the external attributes.
func (e Entry) attributes() uint32 {
	switch {
	case e.IsFolder():
		return folderMode<<16 | folderBit
	case e.Executable:
		return executableMode << 16
	}
	return fileMode << 16
}

// narrow returns a value for a field of 32 bits.
func narrow(value int64) uint32 { return uint32(min(value, wide)) }

// zip64Extra returns the ZIP64 field with those values that are too large for 32 bits, or nil.
func zip64Extra(values ...int64) []byte {
	var large []byte
	for _, v := range values {
		if v >= wide {
			large = binary.LittleEndian.AppendUint64(large, uint64(v))
		}
	}
	if large == nil {
		return nil
	}
	b := binary.LittleEndian.AppendUint16(nil, zip64Field)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(large)))
	return append(b, large...)
}

// dosTime returns time and date as MS-DOS writes them, in UTC. The time is one of keptTime.
func dosTime(t time.Time) (clock, date uint16) {
	if t.Year() < 1980 {
		t = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	clock = uint16(t.Hour()<<11 | t.Minute()<<5 | t.Second()/2)
	return clock, uint16((t.Year()-1980)<<9 | int(t.Month())<<5 | t.Day())
}

// end returns the records after the directory.
func (l *Layout) end() []byte {
	var b []byte
	if l.Directory >= wide {
		b = l.appendEnd64(b)
	}
	b = binary.LittleEndian.AppendUint32(b, endSignature)
	b = append(b, make([]byte, 4)...) // disks
	b = binary.LittleEndian.AppendUint16(b, uint16(len(l.Entries)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(l.Entries)))
	b = binary.LittleEndian.AppendUint32(b, uint32(l.size))
	b = binary.LittleEndian.AppendUint32(b, narrow(l.Directory))
	return append(b, 0, 0) // comment length
}

// appendEnd64 appends the ZIP64 end record and its locator.
func (l *Layout) appendEnd64(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, end64Signature)
	b = binary.LittleEndian.AppendUint64(b, end64Length-12) // without this field and those before it
	b = binary.LittleEndian.AppendUint16(b, madeBy)
	b = binary.LittleEndian.AppendUint16(b, zip64)
	b = append(b, make([]byte, 8)...) // disks
	b = binary.LittleEndian.AppendUint64(b, uint64(len(l.Entries)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(l.Entries)))
	b = binary.LittleEndian.AppendUint64(b, uint64(l.size))
	b = binary.LittleEndian.AppendUint64(b, uint64(l.Directory))

	b = binary.LittleEndian.AppendUint32(b, locatorSignature)
	b = binary.LittleEndian.AppendUint32(b, 0) // disk
	b = binary.LittleEndian.AppendUint64(b, uint64(l.Directory+l.size))
	return binary.LittleEndian.AppendUint32(b, 1) // disks
}
