package lambda_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/blob"
	"ferry/shared/blob/s3"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/lambda"
	"ferry/shared/table/dynamo"
)

func credentials() map[string]string {
	return map[string]string{"AWS_REGION": "eu-south-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
}

func TestEachPortNamesItsMissingSettings(t *testing.T) {
	t.Parallel()
	_, err := lambda.New(environment(nil), lambda.Table(dynamo.Open), lambda.Blobs(s3.Open), lambda.LinkKey)
	for _, name := range []string{
		"FERRY_TABLE", "FERRY_FILES_BUCKET", "FERRY_BACKUP_BUCKET", "FERRY_KEY_PARAMETER",
		"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
	} {
		if err == nil || !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("%s is not mentioned in %v", name, err)
		}
	}
}

func TestAServicesOwnAddressWinsOverTheCommonOne(t *testing.T) {
	t.Parallel()
	cloud := &lambda.Cloud{Getenv: environment(map[string]string{
		"AWS_ENDPOINT_URL":    "http://all",
		"AWS_ENDPOINT_URL_S3": "http://s3",
	})}
	expect.Equal(t, "the address of S3", aws.ToString(cloud.ConfigOf("S3").BaseEndpoint), "http://s3")
	expect.Equal(t, "the address of DynamoDB", aws.ToString(cloud.ConfigOf("DYNAMODB").BaseEndpoint), "http://all")
	none := &lambda.Cloud{Getenv: environment(nil)}
	if got := none.ConfigOf("S3").BaseEndpoint; got != nil {
		t.Errorf("the address of S3 is %s, want none", *got)
	}
}

// TestTheStorageClassReachesTheCopies stands in for S3 with a server that has one object.
func TestTheStorageClassReachesTheCopies(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{"GLACIER_IR": "GLACIER_IR", "STANDARD": ""} {
		var got string
		s3Server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.Header().Set("Content-Length", "1000000")
				return
			}
			got = r.Header.Get("X-Amz-Storage-Class")
			io.WriteString(w, "<CopyObjectResult/>")
		}))
		defer s3Server.Close()
		set := credentials()
		maps.Copy(set, map[string]string{
			"FERRY_FILES_BUCKET": "files", "FERRY_BACKUP_BUCKET": "backup", "FERRY_BACKUP_STORAGE_CLASS": variable, "AWS_ENDPOINT_URL_S3": s3Server.URL,
		})
		f, err := lambda.New(environment(set), lambda.Blobs(s3.Open))
		expect.NoErr(t, err)
		p, err := f.Service(t.Context())
		expect.NoErr(t, err)
		expect.NoErr(t, p.Blobs.Copy(t.Context(), blob.Files, "o/1", blob.Backup, "o/1"))
		expect.Equal(t, "the class of a copy, with "+variable, got, want)
	}
}
