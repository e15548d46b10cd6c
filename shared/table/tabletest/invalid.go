package tabletest

import (
	"context"
	"slices"
	"time"

	"ferry/shared/table"
)

func invalidCases() []testCase {
	fine := put("fine", row{})
	var tooMany []table.Op
	for _, sk := range numbered(table.MaxOps + 1) {
		tooMany = append(tooMany, put(sk, row{}))
	}
	grown := items{"k": {Name: long(300_000)}}
	cases := []testCase{
		{"more than 100 operations write nothing", nil, ops(tooMany...), invalid, nil},
		{"an item too large writes nothing", nil, ops(fine, put("k", row{Name: long(table.MaxItem + 1)})), invalid, nil},
		{"an update to an item too large fails", nil, ops(update("k").Set("name", long(table.MaxItem+1))), invalid, nil},
		{"an item that grows too large is an error", grown, ops(fine, update("k").Set("note", long(300_000))), invalid, nil},
		{"every method refuses bad keys", nil, badKeys, done, nil},
		{"bad queries and too many keys are errors", named("k"), badQueries, done, nil},
		{"Update accepts only updates", named("k"), updateOfOtherKinds, done, nil},
		{"every method fails when the context has ended", named("k"), endedContext, done, nil},
	}
	for name, op := range badOperations() {
		cases = append(cases, testCase{name + " is an error and writes nothing", nil, ops(fine, op), invalid, nil})
	}
	return cases
}

func badOperations() map[string]table.Op {
	up := update("bad")
	type reserved struct {
		Name string `json:"sk"`
	}
	type embeds struct{ reserved }
	return map[string]table.Op{
		"a put of nil":                                   put("bad", nil),
		"a put of a nil pointer":                         put("bad", (*row)(nil)),
		"a put of a string":                              put("bad", "x"),
		"a put of a slice":                               put("bad", []row{}),
		"a put of a map":                                 put("bad", map[string]string{}),
		"a put of a struct with the attribute sk":        put("bad", reserved{"x"}),
		"a put of a struct that embeds the attribute sk": put("bad", embeds{}),
		"a put of a channel":                             put("bad", struct{ C chan int }{make(chan int)}),
		"a put with changes":                             put("bad", row{}).Set("name", "x"),
		"an update without changes":                      up,
		"an update that sets an attribute twice":         up.Set("name", "x").Set("name", "y"),
		"an update that sets and adds to an attribute":   up.Add("count", 1).Set("count", 2),
		"a set of an attribute without a name":           up.Set("", "x"),
		"a set of pk":                                    up.Set("pk", "x"),
		"a set of sk":                                    up.Set("sk", "x"),
		"an add to ttl":                                  up.Add("ttl", 1),
		"a set to nil":                                   up.Set("name", nil),
		"a set to a float":                               up.Set("name", 1.5),
		"a set to a map":                                 up.Set("name", map[string]string{}),
		"a set to a channel":                             up.Set("name", make(chan int)),
		"a condition equal to nil":                       up.Set("name", "x").If(table.Equal("name", nil)),
		"a condition equal to a slice":                   up.Set("name", "x").If(table.Equal("name", []string{})),
		"a condition on an attribute without a name":     up.Set("name", "x").If(table.Equal("", "x")),
		"a condition on pk":                              up.Set("name", "x").If(table.AtMost("pk", 1)),
		"a condition of an unknown kind":                 up.Set("name", "x").If(table.Cond{Test: 99}),
		"an operation of an unknown kind":                {Kind: 99, Key: up.Key},
		"a check without conditions":                     check("bad"),
		"a check with an expiry":                         check("bad", table.NotExists()).Expire(time.Unix(1, 0)),
		"a delete with an expiry":                        remove("bad").Expire(time.Unix(1, 0)),
		"a delete with changes":                          remove("bad").Set("name", "x"),
		"a second operation on the same key":             put("fine", row{Name: "again"}),
	}
}

func badKeys(s *state) error {
	for _, k := range []table.Key{
		{}, {PK: s.pk}, {SK: "k"}, {PK: s.pk + long(2049-len(s.pk)), SK: "k"}, {PK: s.pk, SK: long(1025)},
		{PK: s.pk, SK: "a\xffb"}, {PK: s.pk + "\xff", SK: "k"},
	} {
		count := table.Update(k).Add("count", 1)
		_, many := s.GetMany(s.Context(), s.key("fine"), k)
		s.wantErr("Get", s.Get(s.Context(), k, &row{}), invalid)
		s.wantErr("GetMany", many, invalid)
		s.wantErr("Update", s.Update(s.Context(), count, &row{}), invalid)
		for _, op := range []table.Op{table.Put(k, row{}), count, table.Delete(k), table.Check(k, table.NotExists())} {
			s.wantErr("Write", s.Write(s.Context(), table.Put(s.key("fine"), row{}), op), invalid)
		}
	}
	return nil
}

func badQueries(s *state) error {
	for _, q := range []table.Query{
		{PK: s.pk}, {PK: s.pk, Limit: -1}, {PK: s.pk, Limit: table.MaxPage + 1}, {Limit: 1},
		{PK: long(2049), Limit: 1}, {PK: s.pk, Limit: 1, After: long(1025)}, {PK: s.pk, Limit: 1, After: "\xff"},
	} {
		_, err := s.Query(s.Context(), q)
		s.wantErr("Query", err, invalid)
		_, err = s.WriteThenQuery(s.Context(), q, s.inPartition([]table.Op{put("new", row{})})...)
		s.wantErr("WriteThenQuery", err, invalid)
	}
	_, err := s.GetMany(s.Context(), slices.Repeat([]table.Key{s.key("k")}, table.MaxKeys+1)...)
	s.wantErr("GetMany", err, invalid)
	return nil
}

func updateOfOtherKinds(s *state) error {
	for _, op := range s.inPartition([]table.Op{put("k", row{}), remove("k"), check("k", table.Exists())}) {
		s.wantErr("Update", s.Update(s.Context(), op, &row{}), invalid)
	}
	return nil
}

func endedContext(s *state) error {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	write := s.inPartition([]table.Op{put("new", row{}), remove("k")})
	change := s.inPartition([]table.Op{update("k").Set("name", "x")})[0]
	q := table.Query{PK: s.pk, Limit: 1}
	_, many := s.GetMany(ctx, s.key("k"))
	_, query := s.Query(ctx, q)
	_, readBack := s.WriteThenQuery(ctx, q, write...)
	for method, err := range map[string]error{
		"Get": s.Get(ctx, s.key("k"), &row{}), "GetMany": many, "Query": query, "Write": s.Write(ctx, write...),
		"WriteThenQuery": readBack, "Update": s.Update(ctx, change, &row{}),
		"Scan": s.Scan(ctx, func(table.Item) error { return nil }),
	} {
		s.wantErr(method, err, kind(context.Canceled))
	}
	return nil
}
