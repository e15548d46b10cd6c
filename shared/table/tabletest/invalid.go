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
		{
			"an item too large writes nothing",
			nil,
			ops(fine, put("k", row{Name: long(table.MaxItem + 1)})),
			invalid,
			nil,
		},
		{
			"an item that grows too large is an error",
			grown,
			ops(fine, update("k").Set("note", long(300_000))),
			invalid,
			nil,
		},
		{"every method refuses what it cannot have", named("k"), badCalls, done, nil},
		{"every method fails when the context has ended", named("k"), endedContext, done, nil},
	}
}

// callAll calls every method with a key and a limit, and returns their errors.
func (s *state) callAll(ctx context.Context, key table.Key, limit int) map[string]error {
	q := table.Query{PK: s.pk, Limit: limit}
	_, many := s.GetMany(ctx, s.key("k"), key)
	_, query := s.Query(ctx, q)
	_, readBack := s.WriteThenQuery(ctx, q, table.Put(s.key("new"), row{}))
	return map[string]error{
		"Get":            s.Get(ctx, key, &row{}),
		"GetMany":        many,
		"Query":          query,
		"WriteThenQuery": readBack,
		"Update":         s.Update(ctx, table.Update(key).Add("count", 1), &row{}),
		"Write":          s.Write(ctx, table.Put(s.key("fine"), row{}), table.Delete(key)),
	}
}

func badCalls(s *state) error {
	errs := s.callAll(s.Context(), table.Key{PK: s.pk, SK: "a\xffb"}, 0)
	errs["Update by another kind"] = s.Update(s.Context(), table.Delete(s.key("k")), &row{})
	for method, err := range errs {
		s.wantErr(method, err, invalid)
	}
	return nil
}

func endedContext(s *state) error {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	errs := s.callAll(ctx, s.key("k"), 1)
	errs["Scan"] = s.Scan(ctx, func(table.Item) error { return nil })
	for method, err := range errs {
		s.wantErr(method, err, kind(context.Canceled))
	}
	return nil
}
