package notify_test

import (
	"fmt"
	"testing"

	"ferry/shared/notify"
	"ferry/shared/table"
)

// odd is an item of the outbox that is not a Notice.
type odd struct {
	V         int64  `json:"v"`
	ID        string `json:"id,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Tries     string `json:"tries,omitempty"`
	NotBefore int64  `json:"notBefore"`
}

// poison is the key of an item that no sender can read.
func poison() table.Key {
	return table.Key{PK: notify.Partitions(notify.OutboxPrefix)[0], SK: "0000000000000-poison"}
}

func TestUnreadableNoticeDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	key := poison()
	tests := []struct {
		name   string
		poison func(p *machine) table.Op
		id     string // the id of the failed notice
	}{
		{"an item of another shape", func(*machine) table.Op { return table.Put(key, odd{V: 1, ID: key.SK, Tries: "many"}) }, key.SK},
		{"an item of a later version", func(*machine) table.Op { return table.Put(key, odd{V: 2, ID: key.SK}) }, key.SK},
		{"an item without an ID", func(*machine) table.Op { return table.Put(key, odd{V: 1}) }, key.SK},
		{"an item in the wrong place", func(p *machine) table.Op {
			op := p.linkNotice(1).Op(start(), "wrong")
			op.Key.SK += "-place"
			return op
		}, fmt.Sprintf("%013d-wrong-place", start().UnixMilli())},
		{"a notice of an unknown kind", func(p *machine) table.Op {
			n := p.pinNotice()
			n.Kind = "fax"
			return n.Op(start(), "x")
		}, fmt.Sprintf("%013d-x", start().UnixMilli())},
		{"a notice for an unknown channel", func(p *machine) table.Op {
			n := p.pinNotice()
			n.Channel = "pigeon"
			return n.Op(start(), "x")
		}, fmt.Sprintf("0-%013d-x", start().UnixMilli())},
		{"a notice to a malformed address", func(p *machine) table.Op {
			n := p.pinNotice()
			n.To = "nobody"
			return n.Op(start(), "x")
		}, fmt.Sprintf("0-%013d-x", start().UnixMilli())},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			op := tt.poison(p)
			must(t, p.table.Write(t.Context(), op))
			if i == 0 { // as if a message brought it
				if again, err := p.sender(t, nil).Handle(t.Context(), op.Key); err != nil || again != 0 {
					t.Errorf("again after %v, %v", again, err)
				}
			}
			for i := range int64(5) {
				p.put(t, p.linkNotice(i+1))
			}
			sent, next := p.pass(t, p.sender(t, nil))
			if sent != 5 || !next.IsZero() || p.waiting(t) != 0 {
				t.Errorf("%d sent, next %v, %d waiting: %s", sent, next, p.waiting(t), p.log)
			}
			if failed := p.failed(t); len(failed) != 1 || failed[0].ID != tt.id || failed[0].LastError == "" {
				t.Errorf("failed: %+v", failed)
			}
		})
	}
}

func TestNoticeWithoutCountersIsSent(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	full := p.pinNotice()
	key := notify.Notice{ID: "0001-a"}.Key()
	if err := p.table.Write(t.Context(), table.Put(key, struct {
		V       int64  `json:"v"`
		ID      string `json:"id"`
		Kind    string `json:"kind"`
		Channel string `json:"channel"`
		To      string `json:"to"`
		Nonce   string `json:"nonce"`
	}{1, "0001-a", "pin", "mail", full.To, "nonce"})); err != nil {
		t.Fatal(err)
	}
	if sent, _ := p.pass(t, p.sender(t, nil)); sent != 1 || p.waiting(t) != 0 {
		t.Errorf("%d sent: %s", sent, p.log)
	}
}
