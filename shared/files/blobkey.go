package files

import (
	"strconv"
	"strings"
)

// ParseBlobKey reads the owner and the id of the file whose bytes have a key
// in the blob store: owner/id-random. ok is false for keys of another form.
func ParseBlobKey(key string) (owner string, id int64, ok bool) {
	owner, name, _ := strings.Cut(key, "/")
	digits, random, ok := strings.Cut(name, "-")
	id, err := strconv.ParseInt(digits, 10, 64)
	return owner, id, ok && err == nil && random != ""
}
