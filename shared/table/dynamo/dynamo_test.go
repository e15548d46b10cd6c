package dynamo_test

import (
	"context"
	"crypto/rand"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"ferry/shared/table"
	"ferry/shared/table/dynamo"
	"ferry/shared/table/tabletest"
)

// connect returns a client of the stand-in and a new table in it.
func connect(t *testing.T, options ...func(*dynamodb.Options)) (*dynamodb.Client, string) {
	t.Helper()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs DynamoDB Local: go run ./infra/awslocal -- go test ./shared/table/dynamo")
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	must(t, err)
	name := "ferry-" + rand.Text()
	must(t, tabletest.CreateTable(t.Context(), dynamodb.NewFromConfig(cfg), name))
	t.Cleanup(func() {
		dynamodb.NewFromConfig(cfg).DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
	})
	// Unlike DynamoDB, the stand-in sends no checksum with an error, and the SDK
	// would log a warning each time.
	options = append(options, func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = true })
	return dynamodb.NewFromConfig(cfg, options...), name
}

func TestConformance(t *testing.T) {
	t.Parallel()
	client, name := connect(t)
	tabletest.Run(t, func(*testing.T) table.Table { return dynamo.New(client, name) })
}

func TestItemsAreStoredAsDocumented(t *testing.T) {
	t.Parallel()
	client, name := connect(t)
	tbl, key := dynamo.New(client, name), table.Key{PK: "p", SK: "s"}
	type untagged struct {
		TTL  int64
		PK   string
		Name string `json:"name"`
	}
	expires := time.Unix(1_900_000_000, 999)
	must(t, tbl.Write(t.Context(), table.Put(key, untagged{TTL: 1, PK: "x", Name: "n"}).Expire(expires)))
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	at := map[string]types.AttributeValue{"pk": text("p"), "sk": text("s")}
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &name, Key: at})
	must(t, err)
	want := map[string]types.AttributeValue{
		"pk": text("p"), "sk": text("s"), "name": text("n"), "PK": text("x"),
		"ttl": &types.AttributeValueMemberN{Value: "1900000000"}, "TTL": &types.AttributeValueMemberN{Value: "1"},
	}
	if !reflect.DeepEqual(out.Item, want) {
		t.Errorf("got %v, want %v", out.Item, want)
	}
	var got untagged
	if err := tbl.Get(t.Context(), key, &got); err != nil || got != (untagged{TTL: 1, PK: "x", Name: "n"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
