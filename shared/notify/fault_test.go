package notify_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// TestNoFaultLosesANoticeAndOnlyTheCrashWindowDoublesOne lets everything go wrong at
// once: the provider fails before, while and after it takes a message, the table
// fails around each write, processes die at any of these moments, and messages come
// several times, in any order, too early or never.
//
// A message can go out twice only if something fails in the crash window: after
// the provider has taken it, and before the outbox says so. Each such failure
// costs at most one more message, and nothing else does.
func TestNoFaultLosesANoticeAndOnlyTheCrashWindowDoublesOne(t *testing.T) {
	t.Parallel()
	const workers = 16
	p := newMachine(t)
	w := &world{machine: p, taken: map[string]int{}, windows: map[string]int{}, random: rand.New(rand.NewPCG(4, 2026))}
	stored := w.upload(2000)
	w.deliver(w.stream(stored), workers)
	for {
		p.clock.advance(time.Hour)
		lost := w.overdue()
		if len(lost) == 0 {
			break
		}
		w.deliver(lost, workers)
	}

	doubled, windows := 0, 0
	for _, n := range stored {
		taken, allowed := w.taken[n.ID], 1+w.windows[n.ID]
		if taken < 1 || taken > allowed {
			t.Errorf("%s was sent %d times, with %d failures in the crash window", n.ID, taken, allowed-1)
		}
		doubled, windows = doubled+taken-1, windows+allowed-1
	}
	known, err := notify.States(t.Context(), p.table, idsOf(stored))
	if err != nil || len(known) != len(stored) {
		t.Errorf("%d of %d notices are known: %v", len(known), len(stored), err)
	}
	for _, n := range known {
		if n.State() != notify.Sent || n.Provider == "" {
			t.Errorf("state %+v", n)
		}
	}
	if p.waiting() != 0 || len(p.failed()) != 0 {
		t.Errorf("%d are left in the outbox, %d failed", p.waiting(), len(p.failed()))
	}
	if doubled == 0 || doubled > windows || w.kills.Load() < 100 {
		t.Errorf("%d doubled, %d failures in the crash window, %d kills: the test shows nothing",
			doubled, windows, w.kills.Load())
	}
	t.Logf(
		"%d notices; %d extra messages, at most %d allowed (one for each failure in the crash window); %d processes killed", len(stored), doubled, windows, w.kills.Load(),
	)

	w.quiet = true
	before := w.total()
	w.deliver(w.stream(stored), workers)
	expect.Equal(t, "messages after a replay of the whole stream", w.total()-before, 0)
}

// world makes the faults.
type world struct {
	*machine
	quiet bool // nothing fails any more
	kills atomic.Int64

	mu      sync.Mutex
	random  *rand.Rand
	taken   map[string]int // how often the provider took each notice
	windows map[string]int // failures after that and before the mark, by notice
}

// upload writes files with a notice each.
func (w *world) upload(count int) (stored []notify.Notice) {
	w.Helper()
	for i := range count {
		n := w.linkNotice(int64(i + 1))
		if i%4 == 0 {
			n.Channel, n.To = files.SMS, "+393331234567"
		}
		stored = append(stored, w.put(n))
	}
	return stored
}

// event is a queue's message: it points at a notice, and is visible from a time on.
type event struct {
	key table.Key
	at  time.Time
}

// stream returns up to three events for each notice, shuffled.
func (w *world) stream(all []notify.Notice) []event {
	var out []event
	for _, n := range all {
		for range w.random.IntN(4) {
			out = append(out, event{n.Key(), w.clock.now()})
		}
	}
	w.random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// overdue returns an event for each overdue notice.
func (w *world) overdue() (out []event) {
	w.Helper()
	now := w.clock.now()
	var topics relayed
	_, err := notify.Remind(w.Context(), w.table, &topics, now)
	must(w, err)
	for _, m := range topics.sent[notify.NoticesTopic] {
		key, err := notify.PointerKey(m.Body)
		must(w, err)
		out = append(out, event{key, now})
	}
	return out
}

// deliver is a queue with several functions behind it: an event that was not handled
// comes again. It ends when all events are handled.
func (w *world) deliver(queue []event, workers int) {
	w.Helper()
	processes := make([]*process, workers)
	for round := 0; len(queue) > 0; round++ {
		if round > 5000 {
			w.Fatalf("%d events never end", len(queue))
		}
		now, visible, later := w.clock.now(), make(chan event, len(queue)), []event(nil)
		for _, e := range queue {
			if e.at.After(now) {
				later = append(later, e)
			} else {
				visible <- e
			}
		}
		close(visible)
		if len(visible) == 0 {
			first := slices.MinFunc(later, func(a, b event) int { return a.at.Compare(b.at) })
			w.clock.advance(first.at.Sub(now))
			continue
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range processes {
			wg.Go(func() {
				for e := range visible {
					if processes[i] == nil || processes[i].dead.Load() {
						processes[i] = w.start()
					}
					if again := processes[i].handle(e.key); again > 0 {
						mu.Lock()
						later = append(later, event{e.key, now.Add(again)})
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		queue = later
	}
}

// chance returns true with a probability of perMille in 1000.
func (w *world) chance(perMille int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.quiet && w.random.IntN(1000) < perMille
}

func (w *world) count(counts map[string]int, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts[id]++
}

func (w *world) total() (sum int) {
	for _, n := range w.taken {
		sum += n
	}
	return sum
}

// process is one run of a function, or of `ferry serve`. Once it is dead, it has no
// effect any more.
type process struct {
	table.Table
	world  *world
	sender *notify.Sender
	dead   atomic.Bool
}

func (w *world) start() *process {
	p := &process{Table: w.table, world: w}
	p.sender = w.sender(p, p.send)
	return p
}

// visibility is when a queue shows an event again if no function has answered.
const visibility = 90 * time.Second

// handle returns how long it takes until the event comes again, 0 if it does not.
func (p *process) handle(key table.Key) time.Duration {
	if p.world.chance(4) { // `ferry serve` looks by itself
		p.sender.SendDue(p.world.Context())
	}
	again, err := p.sender.Handle(p.world.Context(), key)
	if err != nil || p.dead.Load() {
		return visibility
	}
	return again
}

func (p *process) kill() {
	p.dead.Store(true)
	p.world.kills.Add(1)
}

var errFault = errors.New("a fault that the test makes")

// Write fails before or after it has written, with or without its process.
func (p *process) Write(ctx context.Context, ops ...table.Op) error {
	if !p.dead.Load() && p.world.chance(20) {
		p.kill()
	}
	if p.dead.Load() || p.world.chance(20) {
		p.unmarked(ops)
		return errFault
	}
	err := p.Table.Write(ctx, ops...)
	if p.world.chance(20) {
		p.kill()
	}
	if p.dead.Load() || p.world.chance(20) {
		return errFault
	}
	return err
}

// unmarked records that the provider took a message and the outbox does not say so.
func (p *process) unmarked(ops []table.Op) {
	for _, op := range ops {
		if n, ok := op.Value.(notify.Notice); ok && n.Outcome == notify.Sent {
			p.world.count(p.world.windows, n.ID)
		}
	}
}

func (p *process) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	if p.dead.Load() || p.world.chance(10) {
		return nil, errFault
	}
	return p.Table.GetMany(ctx, keys...)
}

func (p *process) Query(ctx context.Context, q table.Query) (table.Page, error) {
	if p.dead.Load() || p.world.chance(10) {
		return table.Page{}, errFault
	}
	return p.Table.Query(ctx, q)
}

// send is the provider: it fails before, while and after it takes a message.
func (p *process) send(_ context.Context, _ *notify.Sender, n notify.Notice) (string, error) {
	if !p.dead.Load() && p.world.chance(20) {
		p.kill()
	}
	if p.dead.Load() || p.world.chance(100) {
		return "", errFault
	}
	p.world.count(p.world.taken, n.ID)
	if p.world.chance(50) { // it was taken, but Ferry does not know
		p.world.count(p.world.windows, n.ID)
		return "", errFault
	}
	if p.world.chance(20) {
		p.kill()
	}
	return "provider-" + n.ID, nil
}
