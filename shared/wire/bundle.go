package wire

import "time"

// Entries is a page of the entries of a bundle, in the order of the archive.
type Entries struct {
	Entries []Entry `json:"entries"`
}

// Entry is a file or a folder of a bundle. A folder's path ends in a slash.
type Entry struct {
	Path       string    `json:"path"`
	Length     int64     `json:"length"`   // bytes
	Modified   time.Time `json:"modified"` // whole seconds, UTC
	Executable bool      `json:"executable,omitempty"`
	Offset     int64     `json:"offset"` // of its first byte in the bundle
	CRC32      string    `json:"crc32"`  // 8 hexadecimal digits
}
