package wire

// SignedPart is a request that sends one part of an upload. It needs no login.
type SignedPart struct {
	Number  int               `json:"number"`
	Size    int64             `json:"size"`
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Expires string            `json:"expires"` // RFC 3339, UTC
}

// Arrived is a part that the service has.
type Arrived struct {
	Number    int    `json:"number"`
	Size      int64  `json:"size"`
	CRC64NVME string `json:"crc64nvme,omitempty"` // base64 of 8 bytes, big endian; empty if not known
}
