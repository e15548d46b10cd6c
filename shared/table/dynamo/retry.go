package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"ferry/shared/table"
)

// How long a call is repeated while the table is busy, and the bounds of the
// random pauses between: the first is up to 20 ms, each further one up to
// twice as long.
const (
	patience   = 3 * time.Second
	firstPause = 20 * time.Millisecond
	longPause  = 640 * time.Millisecond
)

// errUnprocessed stands for keys that DynamoDB left out of its answer.
var errUnprocessed = errors.New("some keys were not processed")

// retry repeats call while the table is busy, and returns table.ErrBusy if
// that lasts too long.
func retry(ctx context.Context, call func() error) error {
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := call()
		if !busy(err) {
			return err
		}
		wait := rand.N(pause)
		if time.Since(began)+wait > patience {
			return fmt.Errorf("%w: %v", table.ErrBusy, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// ask makes one call of the SDK as retry does.
func ask[In, Out any](ctx context.Context, call func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error),
	in *In, options ...func(*dynamodb.Options),
) (out *Out, err error) {
	err = retry(ctx, func() error {
		out, err = call(ctx, in, options...)
		return err
	})
	return out, err
}

// busy tells errors by which DynamoDB says that nothing was done and a later
// try may be.
func busy(err error) bool {
	if errors.Is(err, errUnprocessed) {
		return true
	}
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		_, refused := firstRefused(err)
		return !refused && slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool {
			return r.Code != nil && busyCode(*r.Code)
		})
	}
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && busyCode(api.ErrorCode())
}

func busyCode(code string) bool {
	switch code {
	case "TransactionConflictException", "TransactionConflict", "TransactionInProgressException",
		"ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded",
		"ThrottlingException", "ThrottlingError", "RequestLimitExceeded":
		return true
	}
	return false
}

// firstRefused returns the first operation of a transaction whose condition
// was refused.
func firstRefused(err error) (op int, refused bool) {
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return 0, false
	}
	op = slices.IndexFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool {
		return r.Code != nil && *r.Code == "ConditionalCheckFailed"
	})
	return op, op >= 0
}

// attempts watches the SDK's own repetitions of a call.
type attempts struct {
	lost bool // an attempt may have been carried out although it failed
}

func (a *attempts) watch(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("WatchAttempts", a.attempt), "Retry", middleware.After)
	})
}

func (a *attempts) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	out, metadata, err := next.HandleFinalize(ctx, in)
	if err != nil {
		// Only an answer with a 4xx status says that nothing was done. (The
		// SDK wraps a connection's failure in this type too, with status 0.)
		response, ok := errors.AsType[*awshttp.ResponseError](err)
		if !ok || response.HTTPStatusCode()/100 != 4 {
			a.lost = true
		}
	}
	return out, metadata, err
}
