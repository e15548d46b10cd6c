// Package tabletest is the conformance suite of the port table: every backend
// must pass it. It is a table of cases, each a rule that the port's
// documentation states, and one runner. Only tests import it. Start reading with
// Run; each file holds the cases of a few methods.
package tabletest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ferry/shared/table"
)

// testCase is one rule and how to check it.
type testCase struct {
	name string
	seed items  // what is stored before
	do   action // what happens
	err  string // how it ends: done, invalid or refused
	want items  // what is stored afterwards; nil: the same as before
}

// action does something in the case's own partition.
type action func(*state) error

// items are rows by their sort keys. A key that begins with "x|" is in another
// partition: the name of the case's partition with x at its end.
type items map[string]row

// row is the value that most cases store.
type row struct {
	Name  string   `json:"name"`
	Count int64    `json:"count"`
	Done  bool     `json:"done"`
	Note  string   `json:"note,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

const (
	done    = "no error"
	invalid = "an error without a special meaning"
)

func refused(op int) string { return (&table.ConditionError{Op: op}).Error() }

// kind says what an error means to a caller.
func kind(err error) string {
	if err == nil {
		return done
	}
	for _, meaning := range []error{
		table.ErrNotFound, table.ErrBusy, table.ErrFull, table.ErrUnread, table.ErrUnreadable, context.Canceled,
	} {
		if errors.Is(err, meaning) {
			return meaning.Error()
		}
	}
	refusal, ok := errors.AsType[*table.ConditionError](err)
	if ok && errors.Is(err, table.ErrCondition) {
		return refusal.Error()
	}
	return invalid
}

// Run runs the suite. The table that open returns may be shared with other tests,
// even at the same time: each case uses partitions with random names.
func Run(t *testing.T, open func(t *testing.T) table.Table) {
	for _, c := range slices.Concat(readCases(), writeCases(), updateCases(), conditionCases(), transactionCases(),
		valueCases(), concurrencyCases(), invalidCases()) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tbl := open(t)
			for _, way := range []way{byWrite, byOthers, relaxed} {
				s := &state{
					T:     t,
					Table: tbl,
					way:   way,
					pk:    "test#" + rand.Text(),
					want:  items{},
				}
				if c.run(s); !s.tried.Load() {
					break
				}
			}
		})
	}
}

func (c testCase) run(s *state) {
	s.Helper()
	for some := range slices.Chunk(slices.Sorted(maps.Keys(c.seed)), table.MaxOps) {
		var puts []table.Op
		for _, sk := range some {
			puts = append(puts, put(sk, c.seed[sk]).Relax())
		}
		s.must(s.Write(s.Context(), s.inPartition(puts)...))
	}
	if c.want == nil {
		c.want = c.seed
	}
	maps.Copy(s.want, c.want)
	s.wantErr("the action", c.do(s), c.err)
	s.wantStored(c.seed)
}

// way is a way to make a write. All must have the same result.
type way string

const (
	byWrite  way = "by Write"
	byOthers way = "by Update, or by WriteThenQuery"
	relaxed  way = "by a relaxed Write"
)

// state is a table and a partition that no other case uses. Its methods end the
// case on an error in something that another case checks.
type state struct {
	*testing.T
	table.Table
	way   way
	tried atomic.Bool // whether the way made a difference
	pk    string
	want  items // what must be stored in the end
}

func (s *state) key(sk string) table.Key {
	if partition, rest, ok := strings.Cut(sk, "|"); ok {
		return table.Key{PK: s.pk + partition, SK: rest}
	}
	return table.Key{PK: s.pk, SK: sk}
}

// inPartition returns the operations with the partition filled in.
func (s *state) inPartition(all []table.Op) []table.Op {
	placed := slices.Clone(all)
	for i, op := range placed {
		placed[i].Key = s.key(op.Key.SK)
		placed[i].Relaxed = op.Relaxed || s.way == relaxed
	}
	return placed
}

// try makes one write in the way being tried. shown is what the partition has afterwards, as far
// as that way shows it.
func (s *state) try(all ...table.Op) (shown items, err error) {
	s.tried.Store(true)
	placed := s.inPartition(all)
	switch {
	case s.way != byOthers:
		return s.own(), s.Write(s.Context(), placed...)
	case len(all) == 1 && all[0].Kind == table.KindUpdate:
		var after row
		err = s.Update(s.Context(), placed[0], &after)
		shown = s.own()
		shown[all[0].Key.SK] = after
		return shown, err
	}
	page, err := s.WriteThenQuery(s.Context(), table.Query{
		PK:    s.pk,
		Limit: table.MaxPage,
	}, placed...)
	if err != nil && len(page.Items) > 0 {
		s.Errorf("%s: a failed write returned %d items", s.way, len(page.Items))
	}
	return s.rows(page.Items), err
}

// own returns what is wanted in the case's own partition.
func (s *state) own() items {
	own := maps.Clone(s.want)
	maps.DeleteFunc(own, func(sk string, _ row) bool { return strings.Contains(sk, "|") })
	return own
}

func (s *state) write(all ...table.Op) error {
	_, err := s.try(all...)
	return err
}

// ops makes one write.
func ops(all ...table.Op) action {
	return func(s *state) error {
		shown, err := s.try(all...)
		if err == nil && !reflect.DeepEqual(shown, s.own()) {
			s.Errorf("%s: the write returned %.2000s", s.way, fmt.Sprintf("%+v", shown))
		}
		return err
	}
}

// inTurn makes one write for each operation. Only the last may fail.
func inTurn(each ...table.Op) action {
	return func(s *state) error {
		last := len(each) - 1
		for _, op := range each[:last] {
			s.must(s.write(op))
		}
		return ops(each[last])(s)
	}
}

// nothing does nothing, for rules that the runner itself checks.
func nothing(*state) error { return nil }

// Operations whose partition the runner fills in.

func put(sk string, value any) table.Op { return table.Put(table.Key{SK: sk}, value) }
func update(sk string) table.Op         { return table.Update(table.Key{SK: sk}) }
func remove(sk string) table.Op         { return table.Delete(table.Key{SK: sk}) }
func check(sk string, conds ...table.Cond) table.Op {
	return table.Check(table.Key{SK: sk}, conds...)
}

// named returns items whose names are their sort keys.
func named(sks ...string) items {
	all := items{}
	for _, sk := range sks {
		all[sk] = row{Name: sk}
	}
	return all
}

// numbered returns the sort keys k0000, k0001 and so on.
func numbered(n int) []string {
	sks := make([]string, n)
	for i := range sks {
		sks[i] = fmt.Sprintf("k%04d", i)
	}
	return sks
}

func long(n int) string { return strings.Repeat("x", n) }

func (s *state) must(err error) {
	s.Helper()
	s.wantErr("a step before", err, done)
	if err != nil {
		s.FailNow()
	}
}

func (s *state) wantErr(what string, got error, want string) {
	s.Helper()
	if kind(got) != want {
		s.Errorf("%s, %s: got error %v, want %s", s.way, what, got, want)
	}
}

// wantStored compares what is wanted with what each kind of read returns, also
// for items that were there before.
func (s *state) wantStored(before items) {
	s.Helper()
	all := maps.Clone(s.want)
	maps.Copy(all, before)
	partitions := map[string][]string{s.pk: nil}
	for _, sk := range slices.Sorted(maps.Keys(all)) {
		k := s.key(sk)
		if _, there := s.want[sk]; there {
			partitions[k.PK] = append(partitions[k.PK], sk)
		}
		if len(all) <= table.MaxKeys {
			s.wantItem("Get", sk, func(into any) error { return s.Get(s.Context(), k, into) })
		}
	}
	for sks := range slices.Chunk(slices.Collect(maps.Keys(all)), table.MaxKeys) {
		if len(sks) <= table.MaxKeys/2 {
			sks = append(sks, sks...) // keys may repeat
		}
		var keys []table.Key
		for _, sk := range sks {
			keys = append(keys, s.key(sk))
		}
		many, err := s.GetMany(s.Context(), keys...)
		s.must(err)
		s.wantItems("GetMany", many, sks)
	}
	for pk, want := range partitions {
		s.wantItems("Query", s.pages(table.Query{PK: pk, Limit: table.MaxPage}), want)
		slices.Reverse(want)
		s.wantItems("Query", s.pages(table.Query{PK: pk, Limit: 3, Descending: true}), want)
	}
}

func (s *state) wantItem(how, sk string, decode func(into any) error) {
	s.Helper()
	var got row
	err := decode(&got)
	want, there := s.want[sk]
	if !reflect.DeepEqual(got, want) ||
		there && err != nil ||
		!there && !errors.Is(err, table.ErrNotFound) {
		s.Errorf("%s: %s of %.20q returns %.900s, %v; want %.900s",
			s.way, how, sk, fmt.Sprint(got), err, fmt.Sprint(want))
	}
}

func (s *state) wantItems(how string, got []table.Item, want []string) {
	s.Helper()
	if len(got) != len(want) {
		s.Errorf("%s: %s returns %d items, want %d", s.way, how, len(got), len(want))
		return
	}
	for i, item := range got {
		if _, there := s.want[want[i]]; item.Key != s.key(want[i]) || item.Found() != there {
			s.Errorf("%s: %s returns %q at position %d, want %q",
				s.way, how, item.Key.SK, i, want[i])
		}
		s.wantItem(how, want[i], item.Decode)
	}
}

// pages reads all pages of a query.
func (s *state) pages(q table.Query) (all []table.Item) {
	s.Helper()
	for item, err := range table.Each(s.Context(), s, q) {
		s.must(err)
		all = append(all, item)
	}
	return all
}

// reads returns all ways to read an existing item, including that of an update.
func (s *state) reads(sk string) map[string]func(into any) error {
	touch := s.inPartition([]table.Op{update(sk).Set("unrelated", "x")})[0]
	many, err := s.GetMany(s.Context(), s.key(sk))
	s.must(err)
	return map[string]func(into any) error{
		"Get":     func(into any) error { return s.Get(s.Context(), s.key(sk), into) },
		"GetMany": many[0].Decode,
		"Query":   s.pages(table.Query{PK: s.pk, Limit: 1})[0].Decode,
		"Update":  func(into any) error { return s.Update(s.Context(), touch, into) },
	}
}

// rows decodes items of the case's own partition.
func (s *state) rows(all []table.Item) items {
	s.Helper()
	rows := items{}
	for _, item := range all {
		var r row
		s.must(item.Decode(&r))
		rows[item.Key.SK] = r
	}
	return rows
}
