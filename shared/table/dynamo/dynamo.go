// Package dynamo implements table.Table on a DynamoDB table with the string keys
// pk and sk, which expires items by the number ttl (Unix seconds) and needs no
// index. Start reading with Open; write.go has the writes.
//
// A Write of one operation is one conditional PutItem, UpdateItem or DeleteItem,
// which costs half as much as a transaction. If the answer to such a call is
// lost, the SDK retries it. A retried Add may count twice. If a retry is refused
// by a condition that the lost attempt may have changed, that is not reported as
// a refusal: a Put finds out whether it was done, and otherwise the error says
// that the outcome is unknown. A Write of several operations is a transaction,
// which happens once however often it is retried.
package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"ferry/shared/table"
)

// Table is a table.Table in one DynamoDB table.
type Table struct {
	client *dynamodb.Client
	name   string
}

// New returns the table with this name. It makes no call.
func New(client *dynamodb.Client, name string) *Table {
	return &Table{client: client, name: name}
}

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, key table.Key, into any) error {
	if err := table.CheckKeys(key); err != nil {
		return err
	}
	in := &dynamodb.GetItemInput{
		TableName:      &t.name,
		Key:            keyAttributes(key),
		ConsistentRead: new(true),
	}
	out, err := ask(ctx, t.client.GetItem, in)
	if err != nil {
		return fmt.Errorf("getting item %q: %w", key, err)
	}
	return newItem(key, out.Item).Decode(into)
}

// GetMany implements table.Table. It makes further calls if DynamoDB leaves items out of an
// answer, because it is busy or they exceed 16 MB.
func (t *Table) GetMany(ctx context.Context, keys ...table.Key) ([]table.Item, error) {
	if err := table.CheckKeys(keys...); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, nil
	}
	found := make(map[table.Key]attributes, len(keys))
	var wanted []attributes
	for _, key := range keys {
		if _, repeated := found[key]; !repeated { // DynamoDB refuses a repeated key
			found[key] = nil
			wanted = append(wanted, keyAttributes(key))
		}
	}
	err := patiently(ctx, func() error {
		out, err := t.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{t.name: {
				Keys:           wanted,
				ConsistentRead: new(true),
			}},
		})
		if err != nil {
			return err
		}
		for _, item := range out.Responses[t.name] {
			found[keyOf(item)] = item
		}
		wanted = out.UnprocessedKeys[t.name].Keys
		if len(wanted) > 0 {
			return errUnprocessed
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("getting %d items: %w", len(keys), err)
	}
	items := make([]table.Item, len(keys))
	for i, key := range keys {
		items[i] = newItem(key, found[key])
	}
	return items, nil
}

// Query implements table.Table. It asks for one item more than the page holds,
// so that More is exact.
func (t *Table) Query(ctx context.Context, q table.Query) (table.Page, error) {
	if err := table.CheckQuery(q); err != nil {
		return table.Page{}, err
	}
	out, err := ask(ctx, t.client.Query, t.queryInput(q))
	if err != nil {
		return table.Page{}, fmt.Errorf("querying partition %q: %w", q.PK, err)
	}
	page := table.Page{More: len(out.Items) > q.Limit || out.LastEvaluatedKey != nil}
	for _, item := range out.Items[:min(len(out.Items), q.Limit)] {
		page.Items = append(page.Items, newItem(keyOf(item), item))
	}
	return page, nil
}

func (t *Table) queryInput(q table.Query) *dynamodb.QueryInput {
	condition := "#pk = :pk"
	names := map[string]string{"#pk": attrPK}
	values := attributes{":pk": text(q.PK)}
	if q.After != "" {
		condition += " AND #sk > :after"
		if q.Descending {
			condition = "#pk = :pk AND #sk < :after"
		}
		names["#sk"] = attrSK
		values[":after"] = text(q.After)
	}
	return &dynamodb.QueryInput{
		TableName:                 &t.name,
		KeyConditionExpression:    &condition,
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
		ConsistentRead:            new(true),
		ScanIndexForward:          new(!q.Descending),
		Limit:                     new(int32(q.Limit) + 1),
	}
}

// Scan implements table.Table. It makes one call for each MB.
func (t *Table) Scan(ctx context.Context, yield func(table.Item) error) error {
	in := &dynamodb.ScanInput{TableName: &t.name, ConsistentRead: new(true)}
	for {
		out, err := ask(ctx, t.client.Scan, in)
		if err != nil {
			return fmt.Errorf("scanning the table: %w", err)
		}
		for _, item := range out.Items {
			if err := yield(newItem(keyOf(item), item)); err != nil {
				return err
			}
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		if in.ExclusiveStartKey == nil {
			return nil
		}
	}
}

// DeleteExpired implements table.Table. DynamoDB removes expired items by itself.
func (t *Table) DeleteExpired(context.Context, time.Time) (int, error) { return 0, nil }

// Open returns the table with this name. It makes no call.
func Open(c aws.Config, name string) table.Table { return New(dynamodb.NewFromConfig(c), name) }
