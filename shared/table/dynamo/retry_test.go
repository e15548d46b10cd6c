package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"ferry/shared/boot/expect"
	"ferry/shared/table"
)

// scripted gives answers that a stand-in cannot give. A test that calls a method
// without an answer panics.
type scripted struct {
	transact func(*dynamodb.TransactWriteItemsInput) error
	update   func() error
	batch    func(*dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error)
}

// table returns a table whose client asks s, and nobody else.
func (s *scripted) table() *Table {
	answer := func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
		switch in := in.Parameters.(type) {
		case *dynamodb.TransactWriteItemsInput:
			out.Result, err = &dynamodb.TransactWriteItemsOutput{}, s.transact(in)
		case *dynamodb.UpdateItemInput:
			out.Result, err = &dynamodb.UpdateItemOutput{}, s.update()
		case *dynamodb.BatchGetItemInput:
			out.Result, err = s.batch(in)
		}
		return out, m, err
	}
	return New(
		dynamodb.New(dynamodb.Options{APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Scripted", answer), middleware.Before)
		}}}),
		"t",
	)
}

func canceled(codes ...string) error {
	err := &types.TransactionCanceledException{Message: aws.String("canceled")}
	for _, code := range codes {
		err.CancellationReasons = append(err.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
	}
	return fmt.Errorf("operation error: %w", err)
}

func twoOps() []table.Op {
	return []table.Op{table.Put(table.Key{PK: "p", SK: "a"}, struct{}{}), table.Delete(table.Key{PK: "p", SK: "b"})}
}

func TestCancellationReasonsBecomeErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		err     error
		is      error
		refused int // the Op of the ConditionError
		calls   int // 0 for as many as patience allows
	}{
		{
			name:    "the only refused operation is named",
			err:     canceled("None", "ConditionalCheckFailed"),
			is:      table.ErrCondition,
			refused: 1,
			calls:   1,
		},
		{
			name:  "the first of several refused ones is named",
			err:   canceled("ConditionalCheckFailed", "ConditionalCheckFailed"),
			is:    table.ErrCondition,
			calls: 1,
		},
		{
			name:    "a refusal beside a conflict is a refusal",
			err:     canceled("TransactionConflict", "ConditionalCheckFailed"),
			is:      table.ErrCondition,
			refused: 1,
			calls:   1,
		},
		{name: "a lasting conflict is busy", err: canceled("None", "TransactionConflict"), is: table.ErrBusy},
		{name: "lasting throttling is busy", err: canceled("ThrottlingError", "None"), is: table.ErrBusy},
		{
			name: "lasting lack of capacity is busy",
			err:  &types.ProvisionedThroughputExceededException{},
			is:   table.ErrBusy,
		},
		{name: "an item that is too large is neither", err: canceled("ValidationError", "None"), calls: 1},
		{name: "another error is passed on", err: errors.New("no route"), calls: 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				fake := &scripted{transact: func(*dynamodb.TransactWriteItemsInput) error { calls++; return tc.err }}
				err := fake.table().Write(t.Context(), twoOps()...)
				if err == nil {
					t.Fatal("got no error")
				}
				for _, meaning := range []error{table.ErrCondition, table.ErrBusy} {
					if errors.Is(err, meaning) != (meaning == tc.is) {
						t.Errorf("got error %v, want it to match only %v", err, tc.is)
					}
				}
				if refused, ok := errors.AsType[*table.ConditionError](err); ok && refused.Op != tc.refused {
					t.Errorf("operation %d was refused, want %d", refused.Op, tc.refused)
				}
				if tc.calls > 0 && calls != tc.calls || tc.calls == 0 && calls < 8 {
					t.Errorf("made %d calls, want %d (0: at least 8)", calls, tc.calls)
				}
			})
		})
	}
}

func TestABusyTableIsRetriedForABoundedTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), 0
		fake := &scripted{update: func() error {
			if calls++; calls < 5 {
				return &types.TransactionConflictException{}
			}
			return nil
		}}
		op := table.Update(table.Key{PK: "p", SK: "a"}).Add("n", 1)
		if err := fake.table().Write(t.Context(), op); err != nil || calls != 5 {
			t.Errorf("got %v after %d calls, want success at the fifth", err, calls)
		}
		fake.update = func() error { return &types.ThrottlingException{} }
		expect.Err(t, "a table that stays busy", fake.table().Write(t.Context(), op), table.ErrBusy)
		if took := time.Since(began); took > 2*patience {
			t.Errorf("gave up after %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began = time.Now()
		if err := fake.table().Write(ctx, op); !errors.Is(err, table.ErrBusy) ||
			time.Since(began) > 100*time.Millisecond {
			t.Errorf("with a deadline after 100 ms: %v after %s, want ErrBusy", err, time.Since(began))
		}
	})
}

// TestABusyAnswerIsRetriedOnlyHere: the SDK would first wait for up to a second.
func TestABusyAnswerIsRetriedOnlyHere(t *testing.T) {
	t.Parallel()
	var seen attempts
	options := dynamodb.Options{Retryer: sdk.NewStandard()}
	seen.watch(&options)
	for err, want := range map[error]bool{
		&types.ThrottlingException{}: false, &types.ProvisionedThroughputExceededException{}: false, &net.OpError{
			Op:  "dial",
			Err: errors.New("refused"),
		}: true,
	} {
		expect.Equal(t, fmt.Sprintf("the SDK retries a %T", err), options.Retryer.IsErrorRetryable(err), want)
	}
}

func TestATransactionKeepsItsTokenUntilItIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := []error{&types.TransactionInProgressException{}, canceled("TransactionConflict", "None"), nil}
		var tokens []string
		fake := &scripted{transact: func(in *dynamodb.TransactWriteItemsInput) error {
			tokens = append(tokens, *in.ClientRequestToken)
			return answers[len(tokens)-1]
		}}
		expect.NoErr(t, fake.table().Write(t.Context(), twoOps()...))
		if tokens[0] != tokens[1] || tokens[1] == tokens[2] || len(tokens[0]) > 36 {
			t.Errorf("got the tokens %q, want one of at most 36 characters twice, then another", tokens)
		}
	})
}

func TestUnprocessedKeysAreRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []int
		fake := &scripted{batch: func(in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
			keys := in.RequestItems["t"].Keys
			asked = append(asked, len(keys))
			return &dynamodb.BatchGetItemOutput{
				Responses:       map[string][]attributes{"t": keys[:1]},
				UnprocessedKeys: map[string]types.KeysAndAttributes{"t": {Keys: keys[1:]}},
			}, nil
		}}
		key := func(sk string) table.Key { return table.Key{PK: "p", SK: sk} }
		items, err := fake.table().GetMany(t.Context(), key("a"), key("b"), key("a"), key("c"))
		expect.NoErr(t, err)
		expect.Equal(t, "the numbers of keys asked for", asked, []int{3, 2, 1})
		for i, item := range items {
			if !item.Found() {
				t.Errorf("item %d is missing", i)
			}
		}
		fake.batch = func(in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
			return &dynamodb.BatchGetItemOutput{UnprocessedKeys: in.RequestItems}, nil
		}
		_, err = fake.table().GetMany(t.Context(), key("a"))
		expect.Err(t, "keys that stay unprocessed", err, table.ErrBusy)
	})
}
