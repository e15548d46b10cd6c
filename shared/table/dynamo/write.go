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

// Write is described at table.Table. It ignores Relaxed: every write that
// DynamoDB answers is durable.
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

// Update is described at table.Table.
func (t *Table) Update(ctx context.Context, op table.Op, into any) error {
	if err := table.CheckUpdate(op); err != nil {
		return err
	}
	after, err := t.writeOne(ctx, op)
	if err != nil {
		return fmt.Errorf("updating item %q: %w", op.Key, err)
	}
	return decode(after, into)
}

// writeOne makes one call for one operation other than a check. For an update
// it returns the item as it is afterwards.
func (t *Table) writeOne(ctx context.Context, op table.Op) (attributes, error) {
	parts, err := t.parts(op)
	if err != nil {
		return nil, err
	}
	var (
		seen  attempts
		after attributes
	)
	switch {
	case parts.Put != nil:
		_, err = ask(ctx, t.client.PutItem, putInput(parts.Put), seen.watch)
	case parts.Delete != nil:
		_, err = ask(ctx, t.client.DeleteItem, deleteInput(parts.Delete), seen.watch)
	default:
		var out *dynamodb.UpdateItemOutput
		if out, err = ask(ctx, t.client.UpdateItem, updateInput(parts.Update), seen.watch); err == nil {
			after = out.Attributes
		}
	}
	if seen.lost {
		err = afterLost(parts, err)
	}
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return nil, &table.ConditionError{}
	}
	return after, err
}

// afterLost decides about a write that was refused after the answer to an
// earlier attempt at it was lost, so that it may have been done by that one. A
// put is known to be done if the item is there as it was put.
func afterLost(parts types.TransactWriteItem, err error) error {
	refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	switch {
	case ok && parts.Put != nil && reflect.DeepEqual(refused.Item, parts.Put.Item):
		return nil
	case ok && parts.Put != nil:
		return err
	case ok || errors.Is(err, table.ErrBusy):
		// Not wrapped: those errors say that nothing happened.
		return fmt.Errorf("an answer was lost and the outcome is unknown: %v", err)
	}
	return err
}

// transact makes one call for several operations, or for a check.
func (t *Table) transact(ctx context.Context, ops []table.Op) error {
	input := &dynamodb.TransactWriteItemsInput{TransactItems: make([]types.TransactWriteItem, len(ops))}
	for i, op := range ops {
		parts, err := t.parts(op)
		if err != nil {
			return err
		}
		input.TransactItems[i] = parts
	}
	token := rand.Text()
	input.ClientRequestToken = &token
	err := retry(ctx, func() error {
		_, err := t.client.TransactWriteItems(ctx, input)
		if _, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
			token = rand.Text() // that transaction is over; the next try is another
		}
		return err
	})
	if op, refused := firstRefused(err); refused {
		return &table.ConditionError{Op: op}
	}
	return err
}

// parts builds one operation. The calls for a single one have the same parts.
func (t *Table) parts(op table.Op) (types.TransactWriteItem, error) {
	var (
		w types.TransactWriteItem
		e expression
	)
	condition, err := e.condition(op.Conds)
	if err != nil {
		return w, err
	}
	switch op.Kind {
	case table.KindPut:
		item, err := encodeItem(op)
		if err != nil {
			return w, fmt.Errorf("encoding item %q: %w", op.Key, err)
		}
		w.Put = &types.Put{TableName: &t.name, Item: item, ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values}
	case table.KindUpdate:
		update, err := e.update(op)
		if err != nil {
			return w, fmt.Errorf("encoding item %q: %w", op.Key, err)
		}
		w.Update = &types.Update{TableName: &t.name, Key: keyAttributes(op.Key), UpdateExpression: update, ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values}
	case table.KindDelete:
		w.Delete = &types.Delete{TableName: &t.name, Key: keyAttributes(op.Key), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values}
	case table.KindCheck:
		w.ConditionCheck = &types.ConditionCheck{TableName: &t.name, Key: keyAttributes(op.Key), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values}
	}
	return w, nil
}

func putInput(p *types.Put) *dynamodb.PutItemInput {
	in := &dynamodb.PutItemInput{TableName: p.TableName, Item: p.Item, ConditionExpression: p.ConditionExpression,
		ExpressionAttributeNames: p.ExpressionAttributeNames, ExpressionAttributeValues: p.ExpressionAttributeValues}
	if p.ConditionExpression != nil {
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld // for afterLost; costs nothing
	}
	return in
}

func updateInput(u *types.Update) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression,
		ConditionExpression: u.ConditionExpression, ExpressionAttributeNames: u.ExpressionAttributeNames,
		ExpressionAttributeValues: u.ExpressionAttributeValues, ReturnValues: types.ReturnValueAllNew}
}

func deleteInput(d *types.Delete) *dynamodb.DeleteItemInput {
	return &dynamodb.DeleteItemInput{TableName: d.TableName, Key: d.Key, ConditionExpression: d.ConditionExpression,
		ExpressionAttributeNames: d.ExpressionAttributeNames, ExpressionAttributeValues: d.ExpressionAttributeValues}
}

// WriteThenQuery implements table.Table.
func (t *Table) WriteThenQuery(ctx context.Context, q table.Query, ops ...table.Op) (table.Page, error) {
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
