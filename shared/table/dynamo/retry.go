package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"ferry/shared/retry"
	"ferry/shared/table"
)

// patience is how long a call pauses in total while the table is busy, however long its attempts take.
const patience = 3 * time.Second

// errUnprocessed means that DynamoDB left keys out of its answer.
var errUnprocessed = errors.New("some keys were not processed")

// patiently retries call while the table is busy, and returns table.ErrBusy if that lasts too long,
// or the context leaves no time for another call.
func patiently(ctx context.Context, call func() error) (err error) {
	left := patience
	backoff := retry.Backoff{First: 20 * time.Millisecond, Longest: 640 * time.Millisecond}
	for try := range backoff.Loop(ctx) {
		err = call()
		if !busy(err) {
			return err
		}
		left -= try.Pause
		end, ok := ctx.Deadline()
		if left < 0 || ok && time.Now().Add(try.Pause).After(end) {
			break
		}
	}
	if ctx.Err() != nil { // nothing was done
		return fmt.Errorf("%w: %v (%w)", table.ErrBusy, err, ctx.Err())
	}
	return fmt.Errorf("%w: %v", table.ErrBusy, err)
}

// ask makes one call with the SDK, and retries it.
func ask[In, Out any](ctx context.Context, call func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error),
	in *In, options ...func(*dynamodb.Options),
) (out *Out, err error) {
	err = patiently(ctx, func() error {
		out, err = call(ctx, in, options...)
		return err
	})
	return out, err
}

// busy reports whether DynamoDB says that nothing was done and that a later try
// may succeed.
func busy(err error) bool {
	if errors.Is(err, errUnprocessed) {
		return true
	}
	if codes := reasons(err); codes != nil {
		return !slices.Contains(codes, codeRefused) && slices.ContainsFunc(codes, busyCode)
	}
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && busyCode(api.ErrorCode())
}

func busyCode(code string) bool {
	return slices.Contains([]string{
		"TransactionConflictException", "TransactionConflict", "TransactionInProgressException",
		"ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded",
		"ThrottlingException", "ThrottlingError", "RequestLimitExceeded",
	}, code)
}

// codeRefused is the reason of an operation that its condition refused.
const codeRefused = "ConditionalCheckFailed"

// reasons returns the reason of each operation of a canceled transaction; other errors have none.
func reasons(err error) (codes []string) {
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, r := range canceled.CancellationReasons {
			codes = append(codes, aws.ToString(r.Code))
		}
	}
	return codes
}

// firstRefused returns the first operation of a transaction that its condition
// refused.
func firstRefused(err error) (op int, refused bool) {
	op = slices.Index(reasons(err), codeRefused)
	return op, op >= 0
}

// attempts watches the attempts that the SDK makes at one call. The SDK asks
// about every failed attempt whether to retry it.
type attempts struct {
	aws.RetryerV2
	lost error // of the last failed attempt that may have been carried out
}

func (a *attempts) watch(o *dynamodb.Options) {
	a.RetryerV2, o.Retryer = o.Retryer.(aws.RetryerV2), a
}

// IsErrorRetryable implements aws.Retryer. Only an answer with a 4xx status says
// that nothing was done. (The SDK gives a broken connection this type too, with
// status 0.)
func (a *attempts) IsErrorRetryable(err error) bool {
	response, ok := errors.AsType[*awshttp.ResponseError](err)
	if !ok || response.HTTPStatusCode()/100 != 4 {
		a.lost = err
	}
	return !busy(err) && a.RetryerV2.IsErrorRetryable(err) // patiently has shorter pauses
}
