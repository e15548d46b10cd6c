package notify_test

import (
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
func poison() table.Key { return table.Key{PK: "outbox#0", SK: "0000000000000-poison"} }

func TestUnreadableNoticeDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	item := func(v odd) func(*machine) table.Op {
		return func(*machine) table.Op { return table.Put(poison(), v) }
	}
	changed := func(change func(*notify.Notice)) func(*machine) table.Op {
		return func(p *machine) table.Op {
			n := p.pinNotice()
			change(&n)
			return n.Op(start(), "x")
		}
	}
	for name, put := range map[string]func(*machine) table.Op{
		"an item of another shape":         item(odd{V: 1, ID: poison().SK, Tries: "many"}),
		"an item of a later version":       item(odd{V: 2, ID: poison().SK}),
		"an item without an ID":            item(odd{V: 1}),
		"an item in the wrong place":       func(p *machine) table.Op { op := link(p).Op(start(), "x"); op.Key.SK += "-y"; return op },
		"a notice of an unknown kind":      changed(func(n *notify.Notice) { n.Kind = "fax" }),
		"a notice for an unknown channel":  changed(func(n *notify.Notice) { n.Channel = "pigeon" }),
		"a notice to a malformed address":  changed(func(n *notify.Notice) { n.To = "nobody" }),
		"a PIN that is to be sent as text": changed(func(n *notify.Notice) { n.Channel, n.To = notify.SMS, "+393331234567" }),
	} {
		for by, message := range map[string]bool{"found by a lane": false, "brought by a message": true} {
			t.Run(name+", "+by, func(t *testing.T) {
				t.Parallel()
				p := newMachine(t)
				op := put(p)
				must(t, p.table.Write(t.Context(), op))
				for i := range int64(5) {
					p.put(t, p.linkNotice(i+1))
				}
				s := p.sender(t, nil)
				if message {
					if again, err := s.Handle(t.Context(), op.Key); err != nil || again != 0 {
						t.Errorf("again after %v, %v", again, err)
					}
				}
				if sent, next := p.pass(t, s); sent != 5 || !next.IsZero() || p.waiting(t) != 0 {
					t.Errorf("%d sent, next %v, %d waiting: %s", sent, next, p.waiting(t), p.log)
				}
				if failed := p.failed(t); len(failed) != 1 || failed[0].ID != op.Key.SK || failed[0].LastError == "" {
					t.Errorf("failed: %+v", failed)
				}
			})
		}
	}
}
