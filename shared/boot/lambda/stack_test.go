package lambda_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"ferry/shared/blob/s3"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
	"ferry/shared/table/tabletest"
)

// stack makes an empty table and empty buckets in the stand-ins for AWS, and a server in
// place of the Parameter Store. It returns the environment of a function that uses
// them.
func stack(t *testing.T) func(string) string {
	t.Helper()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./shared/boot")
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	check(t, err)
	name := "boot-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	name = name[len(name)-min(len(name), 50):]
	name = strings.Trim(name, "-")
	values := map[string]string{
		"FERRY_TABLE": name, "FERRY_FILES_BUCKET": name + "-files", "FERRY_BACKUP_BUCKET": name + "-backup",
		"FERRY_KEY_PARAMETER": "/ferry/link-key",
		"FERRY_NOTICES_TOPIC": "arn:aws:sns:us-east-1:123456789012:notices", "FERRY_EVENTS_TOPIC": "arn:aws:sns:us-east-1:123456789012:events",
	}
	check(t, tabletest.CreateTable(t.Context(), dynamodb.NewFromConfig(cfg), name))
	buckets := awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.UsePathStyle = true })
	for _, variable := range []string{"FERRY_FILES_BUCKET", "FERRY_BACKUP_BUCKET"} {
		bucket := values[variable]
		if _, err := buckets.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: &bucket}); err != nil {
			t.Fatal(err)
		}
	}
	ssm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"Parameter":{"Value":"`+boottest.Key+`"}}`)
	}))
	t.Cleanup(ssm.Close)
	values["AWS_ENDPOINT_URL_SSM"] = ssm.URL
	return func(variable string) string {
		if v, ok := values[variable]; ok {
			return v
		}
		return os.Getenv(variable)
	}
}

// opened opens all ports like a function, and stores the fixtures' data.
func opened(t *testing.T) *lambda.Function {
	t.Helper()
	f, err := lambda.New(stack(t), lambda.Table(dynamo.Open), lambda.Blobs(s3.Open), lambda.LinkKey)
	check(t, err)
	f.Ports.Log = boottest.Log(t)
	check(t, f.Begin(t.Context()))
	boottest.Seed(t, f.Ports)
	return f
}
