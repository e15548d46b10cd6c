package lambda_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/config"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/minio/crc64nvme"

	"ferry/infra/assembly"
	"ferry/infra/lambdahost"
	"ferry/shared/api/upload"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/table"
	"ferry/shared/wire"
)

// memory is what a session of any size may take of a function, in bytes.
const memory = 128 << 20

// TestASessionOf10000PartsFitsASmallFunction runs the program of the function,
// with a function's time and no more than 128 MiB, on a session of as
// many parts as there can be. They are true ones in the S3 server, of one byte.
// It is no parallel test, as others would take of its time.
func TestASessionOf10000PartsFitsASmallFunction(t *testing.T) {
	getenv := stack(t)
	s3 := openTinyParts(t, getenv)
	environment := environment(getenv)
	environment["AWS_ENDPOINT_URL_S3"] = s3.URL
	f := openedOn(t, func(name string) string {
		if name == "AWS_ENDPOINT_URL_S3" {
			return s3.URL
		}
		return getenv(name)
	})
	boottest.Seed(t, f.Ports)
	g := gateway{t, f, lambda.Gateway(f.Handler(upload.Sessions()), f.Ports)}
	s3.data = random(t, blob.MaxParts)
	var s session
	g.must(201, &s, "POST", "/uploads", fmt.Sprintf(`{"name":"many","length":%d}`, blob.MaxParts))
	g.check(f.Ports.Table.Write(t.Context(), table.Update(table.Key{PK: "upload#" + s.ID, SK: "upload"}).Set("partSize", int64(1))))
	s3.etags = g.sendTiny(s.ID, s3.data)

	host := program(t, "uploads", environment)
	var used int64
	ask := func(method, path, body string, into any) time.Duration {
		t.Helper()
		text, err := json.Marshal(event(t, method, path, body))
		g.check(err)
		answer, err := host.Invoke(t.Context(), text)
		g.check(err)
		var r events.APIGatewayProxyResponse
		g.check(json.Unmarshal(answer.Payload, &r))
		decode(t, r, 200, into)
		used = answer.Peak
		return answer.Took
	}
	state := ask("GET", "/uploads/"+s.ID, "", &s)
	if s.Parts != blob.MaxParts || len(s.Arrived) != blob.MaxParts || s.Arrived[blob.MaxParts-1].Number != blob.MaxParts {
		t.Errorf("of %d parts %d have arrived", s.Parts, len(s.Arrived))
	}
	var first, again answer
	whole := fmt.Sprintf(`{"crc64nvme":%q}`, wire.CRC64Text(crc64nvme.Checksum(s3.data)))
	complete := ask("POST", "/uploads/"+s.ID+"/complete", whole, &first)
	ask("POST", "/uploads/"+s.ID+"/complete", "", &again)
	if len(first.Files) != 3 || first.Files[0] != again.Files[0] || first.Files[0].Length != blob.MaxParts {
		t.Errorf("the answers are %+v and %+v", first, again)
	}
	if used > memory {
		t.Errorf("the function took %d bytes", used)
	}
	t.Logf("the state took %s, the completion %s, and both %d MiB of memory", state, complete, used>>20)
}

// program builds a function, for a host that runs it with this environment.
func program(t *testing.T, name string, environment map[string]string) *lambdahost.Host {
	t.Helper()
	dir := t.TempDir()
	if err := assembly.BuildOne(t.Context(), boottest.Root(t), name, dir); err != nil {
		t.Fatal(err)
	}
	host := lambdahost.New(lambdahost.Function{
		Name: name, Program: filepath.Join(dir, name), Environment: environment, Timeout: 28 * time.Second, Log: t.Output(), // as in template.yaml
	})
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return host
}

// environment is what a function with all ports gets.
func environment(getenv func(string) string) map[string]string {
	all := map[string]string{}
	for _, name := range []string{
		"FERRY_TABLE", "FERRY_FILES_BUCKET", "FERRY_BACKUP_BUCKET", "FERRY_KEY_PARAMETER", "FERRY_NOTICES_TOPIC", "FERRY_EVENTS_TOPIC",
		"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_SSM",
	} {
		all[name] = getenv(name)
	}
	return all
}

func (g gateway) check(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// sendTiny sends parts of one byte, as many as may be asked for at a time, and
// returns the names that the store has for them.
func (g gateway) sendTiny(id string, data []byte) []string {
	g.Helper()
	etags := make([]string, len(data))
	const each = 100
	var wg sync.WaitGroup
	lanes := make(chan struct{}, 8)
	for from := 0; from < len(data); from += each {
		var in struct {
			Numbers   []int             `json:"numbers"`
			CRC64NVME map[string]string `json:"crc64nvme"`
		}
		in.CRC64NVME = map[string]string{}
		for i := from; i < from+each; i++ {
			in.Numbers = append(in.Numbers, i+1)
			in.CRC64NVME[strconv.Itoa(i+1)] = wire.CRC64Text(crc64nvme.Checksum(data[i : i+1]))
		}
		body, err := json.Marshal(in)
		g.check(err)
		signed := g.sign(id, string(body))
		lanes <- struct{}{}
		wg.Go(func() {
			defer func() { <-lanes }()
			for _, p := range signed {
				resp := g.send(p, data[p.Number-1:p.Number])
				if etags[p.Number-1] = resp.Header.Get("ETag"); resp.StatusCode != 200 {
					g.Errorf("part %d: %s", p.Number, resp.Status)
				}
			}
		})
	}
	wg.Wait()
	return etags
}

// tinyParts is the S3 server, but that it completes an upload whose parts are
// smaller than S3 takes: it holds the request to the parts that have arrived,
// and stores their bytes as an object.
type tinyParts struct {
	*testing.T
	*httptest.Server
	client *awss3.Client // of the server behind
	data   []byte
	etags  []string // of the parts
}

func openTinyParts(t *testing.T, getenv func(string) string) *tinyParts {
	t.Helper()
	real, err := url.Parse(getenv("AWS_ENDPOINT_URL_S3"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &tinyParts{T: t, client: awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.UsePathStyle = true })}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(real); r.Out.Host = r.In.Host }, // which is signed
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16},
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") {
			s.complete(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tinyParts) complete(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	whole := wire.CRC64Text(crc64nvme.Checksum(s.data))
	if err := s.checkRequest(r, whole); err != nil {
		s.Errorf("the request to complete: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, err := s.client.PutObject(r.Context(), &awss3.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: bytes.NewReader(s.data), ChecksumCRC64NVME: &whole,
	})
	if err != nil {
		s.Errorf("storing the object: %v", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, `<CompleteMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Bucket>%s</Bucket><Key>%s</Key>`+
		`<ETag>"x"</ETag><ChecksumCRC64NVME>%s</ChecksumCRC64NVME><ChecksumType>FULL_OBJECT</ChecksumType></CompleteMultipartUploadResult>`, bucket, key, whole)
}

// checkRequest compares with what has arrived.
func (s *tinyParts) checkRequest(r *http.Request, whole string) error {
	var asked struct {
		Part []struct {
			PartNumber              int
			ETag, ChecksumCRC64NVME string
		}
	}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = xml.Unmarshal(text, &asked)
	}
	if err != nil {
		return err
	}
	if sum, size := r.Header.Get("X-Amz-Checksum-Crc64nvme"), r.Header.Get("X-Amz-Mp-Object-Size"); sum != whole || size != fmt.Sprint(len(s.data)) {
		return fmt.Errorf("the object has the checksum %s and %s bytes", sum, size)
	}
	if len(asked.Part) != len(s.data) {
		return fmt.Errorf("%d parts are named and %d have arrived", len(asked.Part), len(s.data))
	}
	for i, p := range asked.Part {
		if p.PartNumber != i+1 || p.ETag != s.etags[i] || p.ChecksumCRC64NVME != wire.CRC64Text(crc64nvme.Checksum(s.data[i:i+1])) {
			return fmt.Errorf("part %d is not as it has arrived", i+1)
		}
	}
	return nil
}
