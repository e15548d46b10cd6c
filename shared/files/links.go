package files

import (
	"context"

	"ferry/shared/table"
)

// Links keeps the links that lead to files, and the requests through whose links guests send
// files. Each link has a copy of its file's record, so its operations belong in the same
// transaction as a change of the record. It is safe for concurrent use.
type Links interface {
	// Token returns the token of the file's own link.
	Token(f File) string
	// Add returns the operations that store the links of a new file, and notes in the record
	// which version of the key they use.
	Add(f *File, s Sending) ([]table.Op, error)
	// Replace returns the operations that replace the links of a file with those of its new
	// record, now. The links keep their recipients, limits and counts. If the version of their
	// key was revoked, they get the newest version, which Replace notes in now. The operations
	// are refused if a limited link is used meanwhile. It makes one call to the table.
	Replace(ctx context.Context, f File, now *File) ([]table.Op, error)
	// Remove returns the operations that remove the links of a file for good.
	Remove(f File) []table.Op

	// Admit returns the operations that count what a guest stores against what the request
	// allows. They belong at the end of the same transaction, and the last of them is refused if
	// anything else about the request has changed meanwhile. If the request allows no more, the
	// fault is Forbidden or TooLarge, or TooMany if it will allow more later. It makes at most
	// two calls to the table.
	Admit(ctx context.Context, owner string, by By, t Taking) ([]table.Op, error)
	// RemoveRequests removes all requests of a user.
	RemoveRequests(ctx context.Context, owner string) error

	// Compare returns how the links of a file differ from its record, and the operations that
	// mend that. A quick check does not decide which of two copies is right. It makes one call to
	// the table.
	Compare(ctx context.Context, f File, quick, repair bool) ([]Finding, error)
	// Copy returns the copy of the record that a link's item has, if the item is a link.
	Copy(item table.Item) (f File, is bool, err error)
	// Stray returns a finding if the link with this copy of a record does not belong to the file.
	// If there is no record, and the link belongs to the copy, the finding has the Copy.
	Stray(ctx context.Context, key table.Key, of File) (*Finding, error)
}
