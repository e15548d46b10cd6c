package files

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ferry/shared/table"
)

// Receipt says where an uploader wants to hear of the first download of a
// file. It is stored as an item of its own, beside the record, which the
// transaction of the first download removes: so that is only one, by whichever
// of the file's links it comes, and wherever the file was moved in between.
type Receipt struct {
	To   string `json:"to,omitempty"` // an e-mail address; empty if nobody wants to hear
	Lang string `json:"lang,omitempty"`
	Base string `json:"base,omitempty"` // the service's address
}

type receiptItem struct {
	V    int64  `json:"v"`
	To   string `json:"to"`
	Lang string `json:"lang"`
	Base string `json:"base"`
}

func receiptKey(f File) table.Key { return table.Key{PK: "receipt#" + f.Owner, SK: sortKey(f.ID)} }

// await returns the operation that makes the file's first download be told of.
func (r Receipt) await(f File) []table.Op {
	if r.To == "" {
		return nil
	}
	return []table.Op{table.Put(receiptKey(f), receiptItem{layout, r.To, r.Lang, r.Base})}
}

// forget returns the operation that removes what await has stored, if it is
// still there.
func (f File) forget() []table.Op {
	if !f.Notify {
		return nil
	}
	return []table.Op{table.Delete(receiptKey(f))}
}

// tell does the counting ops and puts the receipt in the outbox, if it is still
// due. If not, or if the link is gone meanwhile, it does nothing.
func (s *Service) tell(ctx context.Context, l Link, counting []table.Op) (told bool, err error) {
	var due receiptItem
	err = s.Table.Get(ctx, receiptKey(l.File), &due)
	if errors.Is(err, table.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading whether a receipt is due: %w", err)
	}
	notice, err := s.Outbox.Message(ctx, Message{
		Channel: Mail, To: due.To, Lang: due.Lang, Base: due.Base, Receipt: true, Recipient: l.item.To,
	}, l.File)
	if err != nil {
		return false, err
	}
	err = s.Table.Write(ctx, append(slices.Clip(counting), table.Delete(receiptKey(l.File)).If(table.Exists()), notice)...)
	if errors.Is(err, table.ErrCondition) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("counting the first download: %w", err)
	}
	return true, nil
}
