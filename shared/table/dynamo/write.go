package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"ferry/shared/table"
)

// Write implements table.Table. It ignores Relaxed: every write that DynamoDB
// answers is durable.
func (t *Table) Write(ctx context.Context, ops ...table.Op) error {
	if err := table.CheckOps(ops...); err != nil {
		return err
	}
	switch {
	case len(ops) == 0:
		return nil
	case len(ops) == 1 && ops[0].Kind != table.KindCheck:
		if _, err := t.writeOne(ctx, ops[0]); err != nil {
			return fmt.Errorf("writing item %q: %w", ops[0].Key, err)
		}
		return nil
	}
	if err := t.transact(ctx, ops); err != nil {
		return fmt.Errorf("writing %d items from %q: %w", len(ops), ops[0].Key, err)
	}
	return nil
}

// Update implements table.Table.
func (t *Table) Update(ctx context.Context, op table.Op, into any) error {
	if err := table.CheckUpdate(op); err != nil {
		return err
	}
	after, err := t.writeOne(ctx, op)
	if err != nil {
		return fmt.Errorf("updating item %q: %w", op.Key, err)
	}
	return newItem(op.Key, after).Decode(into)
}

// writeOne makes one call for one operation that is not a check. For an update
// it returns the item as it is afterwards.
func (t *Table) writeOne(ctx context.Context, op table.Op) (attributes, error) {
	p, err := prepare(op)
	if err != nil {
		return nil, err
	}
	var (
		seen  attempts
		after attributes
	)
	switch op.Kind {
	case table.KindPut:
		in := &dynamodb.PutItemInput{
			TableName:                 &t.name,
			Item:                      p.item,
			ConditionExpression:       p.condition,
			ExpressionAttributeNames:  p.names,
			ExpressionAttributeValues: p.values,
		}
		if p.condition != nil {
			in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld // for afterLost; costs nothing
		}
		_, err = ask(ctx, t.client.PutItem, in, seen.watch)
	case table.KindDelete:
		_, err = ask(ctx, t.client.DeleteItem, &dynamodb.DeleteItemInput{
			TableName:                 &t.name,
			Key:                       p.key,
			ConditionExpression:       p.condition,
			ExpressionAttributeNames:  p.names,
			ExpressionAttributeValues: p.values,
		}, seen.watch)
	default:
		var out *dynamodb.UpdateItemOutput
		out, err = ask(ctx, t.client.UpdateItem, &dynamodb.UpdateItemInput{
			TableName:                 &t.name,
			Key:                       p.key,
			UpdateExpression:          p.update,
			ConditionExpression:       p.condition,
			ExpressionAttributeNames:  p.names,
			ExpressionAttributeValues: p.values,
			ReturnValues:              types.ReturnValueAllNew,
		}, seen.watch)
		if err == nil {
			after = out.Attributes
		}
	}
	if seen.lost != nil {
		err = afterLost(p, err, seen.lost)
	}
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return nil, &table.ConditionError{}
	}
	return after, err
}

// afterLost decides the outcome of a refused write if the answer to an earlier attempt was lost
// and that attempt may have succeeded. A put was done if the item is there as put.
func afterLost(p prepared, err, lost error) error {
	refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	switch {
	case ok && p.item != nil && reflect.DeepEqual(refused.Item, p.item):
		return nil
	case ok && p.item != nil:
		return err
	case ok || errors.Is(err, table.ErrBusy):
		// Not wrapped: those errors say that nothing happened.
		return fmt.Errorf("an answer was lost (%v) and the outcome is unknown: %v", lost, err)
	}
	return err
}

// transact makes one call for several operations, or for a check.
func (t *Table) transact(ctx context.Context, ops []table.Op) error {
	input := &dynamodb.TransactWriteItemsInput{TransactItems: make(
		[]types.TransactWriteItem,
		len(ops),
	)}
	for i, op := range ops {
		p, err := prepare(op)
		if err != nil {
			return err
		}
		input.TransactItems[i] = t.transactItem(op.Kind, p)
	}
	token := rand.Text()
	input.ClientRequestToken = &token
	err := patiently(ctx, func() error {
		_, err := t.client.TransactWriteItems(ctx, input)
		if _, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
			token = rand.Text() // that transaction is over; a retry is a new one
		}
		return err
	})
	if op, refused := firstRefused(err); refused {
		return &table.ConditionError{Op: op}
	}
	return err
}

func (t *Table) transactItem(kind table.Kind, p prepared) types.TransactWriteItem {
	switch kind {
	case table.KindPut:
		return types.TransactWriteItem{Put: &types.Put{
			TableName:                 &t.name,
			Item:                      p.item,
			ConditionExpression:       p.condition,
			ExpressionAttributeNames:  p.names,
			ExpressionAttributeValues: p.values,
		}}
	case table.KindUpdate:
		return types.TransactWriteItem{Update: &types.Update{
			TableName:                 &t.name,
			Key:                       p.key,
			UpdateExpression:          p.update,
			ConditionExpression:       p.condition,
			ExpressionAttributeNames:  p.names,
			ExpressionAttributeValues: p.values,
		}}
	case table.KindDelete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName:                 &t.name,
			Key:                       p.key,
			ConditionExpression:       p.condition,
			ExpressionAttributeNames:  p.names,
			ExpressionAttributeValues: p.values,
		}}
	}
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName:                 &t.name,
		Key:                       p.key,
		ConditionExpression:       p.condition,
		ExpressionAttributeNames:  p.names,
		ExpressionAttributeValues: p.values,
	}}
}

// WriteThenQuery implements table.Table.
func (t *Table) WriteThenQuery(
	ctx context.Context,
	q table.Query,
	ops ...table.Op,
) (table.Page, error) {
	if err := table.CheckQuery(q); err != nil {
		return table.Page{}, err
	}
	if err := t.Write(ctx, ops...); err != nil {
		return table.Page{}, err
	}
	page, err := t.Query(ctx, q)
	if err != nil {
		return table.Page{}, fmt.Errorf("%w: %w", table.ErrUnread, err)
	}
	return page, nil
}
