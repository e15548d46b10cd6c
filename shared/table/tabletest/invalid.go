package tabletest

import (
	"context"

	"ferry/shared/table"
)

// invalidCases show that a backend calls table's checks, whose rules are tested beside them.
func invalidCases() []testCase {
	fine := put("fine", row{})
	grown := items{"k": {Name: long(300_000)}}
	return []testCase{
		{"an invalid operation writes nothing", nil, ops(fine, put("bad", nil)), invalid, nil},
		{"an item that cannot be encoded writes nothing", nil,
			ops(fine, put("bad", struct{ C chan int }{make(chan int)})), invalid, nil},
		{"an item too large writes nothing", nil, ops(fine, put("k", row{Name: long(table.MaxItem + 1)})), invalid, nil},
		{"an update to an item too large fails", nil, ops(update("k").Set("name", long(table.MaxItem+1))), invalid, nil},
		{"an item that grows too large is an error", grown, ops(fine, update("k").Set("note", long(300_000))), invalid, nil},
		{"every method refuses what it cannot have", named("k"), badCalls, done, nil},
		{"every method fails when the context has ended", named("k"), endedContext, done, nil},
	}
}

func badCalls(s *state) error {
	bad := table.Key{PK: s.pk, SK: "a\xffb"}
	_, many := s.GetMany(s.Context(), s.key("k"), bad)
	_, query := s.Query(s.Context(), table.Query{PK: s.pk})
	_, readBack := s.WriteThenQuery(s.Context(), table.Query{PK: s.pk}, s.inPartition([]table.Op{put("new", row{})})...)
	for method, err := range map[string]error{
		"Get": s.Get(s.Context(), bad, &row{}), "GetMany": many, "Query": query, "WriteThenQuery": readBack,
		"Update of a bad key":    s.Update(s.Context(), table.Update(bad).Add("count", 1), &row{}),
		"Update by another kind": s.Update(s.Context(), s.inPartition([]table.Op{remove("k")})[0], &row{}),
		"Write":                  s.Write(s.Context(), table.Put(s.key("fine"), row{}), table.Delete(bad)),
	} {
		s.wantErr(method, err, invalid)
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
