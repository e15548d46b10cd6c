package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// DynamoDB Local tells wrong numbers of units for batches and transactions, so
// they are counted here, by the rules of
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html:
// a read unit is for 4 KB of an item, or of a query's items together, and for
// an item that is not there; a write unit for 1 KB of an item before or after,
// whichever is more; in a transaction twice. All reads here are consistent.
const (
	readUnit  = 4 << 10
	writeUnit = 1 << 10
)

// item is one as DynamoDB's interface has it: {"name": {"S": "text"}}.
type item map[string]map[string]any

// write is what one writes: an item, or something to the item with a key.
type write struct{ Key, Item item }

func (w write) key() item {
	if w.Key != nil {
		return w.Key
	}
	return item{"pk": w.Item["pk"], "sk": w.Item["sk"]}
}

// table counts the units of a call to DynamoDB.
func (m *meter) table(r *http.Request, operation string) (*http.Response, error) {
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	all, times, err := writesOf(operation, body)
	if err != nil {
		return nil, err
	}
	before, err := m.sizes(r, all)
	if err != nil {
		return nil, err
	}
	answer, told, err := m.send(r)
	if err != nil {
		return nil, err
	}
	after, err := m.sizes(r, all)
	if err != nil {
		return nil, err
	}
	for i, w := range all {
		m.add(writes, times*units(max(before[i], after[i], w.Item.size()), writeUnit))
	}
	n, err := readsOf(operation, body, told)
	if err != nil {
		return nil, err
	}
	m.add(reads, n)
	return answer, nil
}

// send sends a request, and returns the answer's body beside it.
func (m *meter) send(r *http.Request) (*http.Response, []byte, error) {
	answer, err := m.next.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	told, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("reading DynamoDB's answer: %w", err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(told))
	return answer, told, nil
}

// writesOf are what a call writes, and how often a unit of it counts.
func writesOf(operation string, body []byte) (all []write, times float64, err error) {
	var asked struct {
		write
		TransactItems []map[string]write // by what is done: Put, Update ...
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, 0, fmt.Errorf("reading a call to DynamoDB: %w", err)
	}
	switch operation {
	case "PutItem", "UpdateItem", "DeleteItem":
		return []write{asked.write}, 1, nil
	case "TransactWriteItems":
		for _, one := range asked.TransactItems {
			for _, w := range one {
				all = append(all, w)
			}
		}
		return all, 2, nil
	}
	return nil, 0, nil
}

// readsOf are the units that a call reads.
func readsOf(operation string, body, told []byte) (n float64, err error) {
	var asked struct {
		RequestItems map[string]struct{ Keys []item }
	}
	var one struct{ Item item }
	var several struct{ Items []item }
	var batch struct{ Responses map[string][]item }
	switch operation {
	case "GetItem":
		err = json.Unmarshal(told, &one)
		n = units(one.Item.size(), readUnit)
	case "Query":
		err = json.Unmarshal(told, &several)
		size := 0
		for _, i := range several.Items {
			size += i.size()
		}
		n = units(size, readUnit)
	case "BatchGetItem":
		if err = json.Unmarshal(body, &asked); err == nil {
			err = json.Unmarshal(told, &batch)
		}
		for name, wanted := range asked.RequestItems {
			n += float64(len(wanted.Keys) - len(batch.Responses[name]))
			for _, i := range batch.Responses[name] {
				n += units(i.size(), readUnit)
			}
		}
	case "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems":
	default:
		err = fmt.Errorf("%s is not counted", operation)
	}
	if err != nil {
		return 0, fmt.Errorf("a call to DynamoDB: %w", err)
	}
	return n, nil
}

// sizes are those of the items that are there now where something is written.
func (m *meter) sizes(r *http.Request, all []write) ([]int, error) {
	sizes := make([]int, len(all))
	for i, w := range all {
		body, err := json.Marshal(map[string]any{"TableName": m.tableName, "Key": w.key(), "ConsistentRead": true})
		if err != nil {
			return nil, fmt.Errorf("asking for an item: %w", err)
		}
		ask := r.Clone(r.Context())
		ask.Header.Set("X-Amz-Target", "DynamoDB_20120810.GetItem") // DynamoDB Local looks at no signature
		ask.Header.Del("Content-Length")
		ask.Body, ask.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		_, told, err := m.send(ask)
		if err != nil {
			return nil, err
		}
		var found struct{ Item item }
		if err := json.Unmarshal(told, &found); err != nil {
			return nil, fmt.Errorf("reading an item's size: %w", err)
		}
		sizes[i] = found.Item.size()
	}
	return sizes, nil
}

// units are what a size takes, at least one.
func units(size, each int) float64 { return float64(max(1, (size+each-1)/each)) }

// size is that of an item as DynamoDB counts it: names and values in UTF-8,
// numbers by two digits a byte
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html).
func (i item) size() (n int) {
	for name, v := range i {
		n += len(name) + sizeOf(v)
	}
	return n
}

func sizeOf(v map[string]any) (n int) {
	for kind, value := range v {
		switch value := value.(type) {
		case string:
			n += textSize(kind, value)
		case []any:
			n += 3
			for _, element := range value {
				n += 1 + anySize(element)
			}
		case map[string]any:
			n += 3
			for name, element := range value {
				n += 1 + len(name) + anySize(element)
			}
		default: // true, false, null
			n++
		}
	}
	return n
}

func textSize(kind, value string) int {
	switch kind {
	case "N":
		return (len(value)+1)/2 + 1
	case "B":
		return base64.StdEncoding.DecodedLen(len(value))
	}
	return len(value)
}

// anySize is that of an element: of a list or map, or of a set of texts.
func anySize(element any) int {
	if v, ok := element.(map[string]any); ok {
		return sizeOf(v)
	}
	text, _ := element.(string)
	return len(text)
}
