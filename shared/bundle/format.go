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

	// wide in a field of 32 bits says that the value is in the ZIP64 field, where all values of
	// at least wide are.
	wide = 0xFFFFFFFF

	fileMode       = 0o100644
	executableMode = 0o100755
	folderMode     = 0o040755
	folderBit      = 0x10 // of MS-DOS
)

// fields appends numbers to b, each as long as its type.
func fields(b []byte, values ...any) []byte {
	for _, v := range values {
		b, _ = binary.Append(b, binary.LittleEndian, v) // fails only for other types
	}
	return b
}

// local returns the entry's local header.
func (e Entry) local() []byte {
	large := zip64Extra(e.Length, e.Length)
	return e.appendNames(e.appendCommon(fields(nil, uint32(localSignature)), large), large)
}

// record returns the entry's record in the directory.
func (e Entry) record() []byte {
	large := zip64Extra(e.Length, e.Length, e.Header)
	b := e.appendCommon(fields(nil, uint32(recordSignature), uint16(madeBy)), large)
	b = append(b, make([]byte, 6)...) // comment length, disk, internal attributes
	return e.appendNames(fields(b, e.attributes(), narrow(e.Header)), large)
}

// appendCommon appends what local header and record have in common. large is the ZIP64 field.
func (e Entry) appendCommon(b, large []byte) []byte {
	version := uint16(plain)
	if len(large) > 0 {
		version = zip64
	}
	clock, date := dosTime(e.Modified)
	return fields(b, version, uint16(utf8Flag), uint16(stored), clock, date,
		e.CRC32, narrow(e.Length), narrow(e.Length), uint16(len(e.Path)), uint16(timeLength+len(large)))
}

// appendNames appends the path and the extra fields.
func (e Entry) appendNames(b, large []byte) []byte {
	b = append(b, e.Path...)
	b = fields(
		b,
		uint16(timeField),
		uint16(timeLength-4),
		uint8(modifiedAt),
		uint32(e.Modified.Unix()),
	)
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
			large = fields(large, v)
		}
	}
	if large == nil {
		return nil
	}
	return append(fields(nil, uint16(zip64Field), uint16(len(large))), large...)
}

// dosTime returns time and date as MS-DOS writes them, in UTC. The time is one of keptTime.
func dosTime(t time.Time) (clock, date uint16) {
	if t.Year() < 1980 {
		t = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	clock = uint16(t.Hour()<<11 | t.Minute()<<5 | t.Second()/2)
	return clock, uint16((t.Year()-1980)<<9 | int(t.Month())<<5 | t.Day())
}

// end returns the records after the directory. If the directory begins at wide or later, they
// include the ZIP64 end record and its locator.
func (l *Layout) end() (b []byte) {
	n := len(l.Entries)
	if l.Directory >= wide {
		length := uint64(end64Length - 12) // without this field and those before it
		disks := uint64(0)
		b = fields(b, uint32(end64Signature), length, uint16(madeBy), uint16(zip64), disks,
			uint64(n), uint64(n), l.size, l.Directory)
		b = fields(b, uint32(locatorSignature), uint32(0), l.Directory+l.size, uint32(1)) // of one disk, the first
	}
	disks, comment := uint32(0), uint16(0)
	return fields(
		b,
		uint32(endSignature),
		disks,
		uint16(n),
		uint16(n),
		uint32(l.size),
		narrow(l.Directory),
		comment,
	)
}
