package boottest_test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/boot/boottest"
	"ferry/shared/boot/local"
	"ferry/shared/notify"
)

// strict reads a fixture as a type of AWS's. A field that the type does not have is an
// error, except for what the tests expect.
func strict(t *testing.T, name string, into any, but ...string) {
	t.Helper()
	var event map[string]json.RawMessage
	boottest.Load(t, name).Decode(t, &event)
	for _, key := range append(but, "expect") {
		delete(event, key)
	}
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("events/%s.json: %v", name, err)
	}
}

// whole fails if a field of a record is missing.
func whole(t *testing.T, name string, record any, but ...string) {
	t.Helper()
	v := reflect.ValueOf(record)
	for i := range v.NumField() {
		if field := v.Type().Field(i).Name; v.Field(i).IsZero() && !slices.Contains(but, field) {
			t.Errorf("events/%s.json has no %s", name, field)
		}
	}
}

func TestTheStreamEventLooksLikeOneFromAWS(t *testing.T) {
	t.Parallel()
	var e events.DynamoDBEvent
	strict(t, "relay", &e)
	for _, r := range e.Records {
		whole(t, "relay", r, "UserIdentity") // set only when the table's own expiry deletes an item
		whole(t, "relay", r.Change, "OldImage")
		for key, v := range r.Change.Keys {
			if r.Change.NewImage[key].String() != v.String() {
				t.Errorf("the item's %s is not that of its key", key)
			}
		}
	}
}

func TestTheQueueEventsLookLikeThoseFromAWS(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"email", "sms"} {
		var e events.SQSEvent
		strict(t, name, &e)
		for _, m := range e.Records {
			whole(t, name, m)
			if got := sum([]byte(m.Body)); got != m.Md5OfBody {
				t.Errorf("events/%s.json: the body's sum is %s", name, got)
			}
			if got := sumOf(m.MessageAttributes); got != m.Md5OfMessageAttributes {
				t.Errorf("events/%s.json: the attributes' sum is %s", name, got)
			}
			key, err := notify.PointerKey(m.Body)
			if n := (notify.Notice{ID: key.SK}); err != nil || n.Key() != key {
				t.Errorf("events/%s.json: the notice %s is at %v, not %v: %v", name, key.SK, n.Key(), key, err)
			}
		}
	}
}

func sum(text []byte) string {
	h := md5.Sum(text)
	return hex.EncodeToString(h[:])
}

// sumOf returns SQS's checksum of attributes, all of which are text.
func sumOf(attributes map[string]events.SQSMessageAttribute) string {
	var all []byte
	add := func(s string) {
		all = binary.BigEndian.AppendUint32(all, uint32(len(s)))
		all = append(all, s...)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		add(name)
		add(attributes[name].DataType)
		all = append(all, 1) // text
		add(*attributes[name].StringValue)
	}
	return sum(all)
}

func TestTheTopicEventLooksLikeOneFromAWS(t *testing.T) {
	t.Parallel()
	var e events.SNSEvent
	strict(t, "feedback", &e)
	for _, r := range e.Records {
		whole(t, "feedback", r)
		whole(t, "feedback", r.SNS)
	}
}

func TestTheLogEventLooksLikeOneFromAWS(t *testing.T) {
	t.Parallel()
	var e events.CloudwatchLogsEvent
	strict(t, "feedbacksms", &e)
	data, err := e.AWSLogs.Parse()
	if err != nil {
		t.Fatal(err)
	}
	whole(t, "feedbacksms", data)
	for _, line := range data.LogEvents {
		whole(t, "feedbacksms", line)
	}
}

func TestTheScheduleEventLooksLikeOneFromAWS(t *testing.T) {
	t.Parallel()
	var e events.EventBridgeEvent
	strict(t, "sweep", &e)
	whole(t, "sweep", e)
}

func TestTheCustomResourceEventLooksLikeOneFromAWS(t *testing.T) {
	t.Parallel()
	var e cfn.Event
	strict(t, "linkkey", &e, "ServiceToken") // CloudFormation repeats it here
	whole(t, "linkkey", e, "PhysicalResourceID", "OldResourceProperties")
}

// gateway is an event of payload format 1.0 with exactly the fields that an HTTP API
// sends; AWS's own type has fewer or more.
type gateway struct {
	Version                         string              `json:"version"`
	Resource                        string              `json:"resource"`
	Path                            string              `json:"path"`
	HTTPMethod                      string              `json:"httpMethod"`
	Headers                         map[string]string   `json:"headers"`
	MultiValueHeaders               map[string][]string `json:"multiValueHeaders"`
	QueryStringParameters           map[string]string   `json:"queryStringParameters"`
	MultiValueQueryStringParameters map[string][]string `json:"multiValueQueryStringParameters"`
	RequestContext                  struct {
		AccountID         string             `json:"accountId"`
		APIID             string             `json:"apiId"`
		DomainName        string             `json:"domainName"`
		DomainPrefix      string             `json:"domainPrefix"`
		ExtendedRequestID string             `json:"extendedRequestId"`
		HTTPMethod        string             `json:"httpMethod"`
		Identity          map[string]*string `json:"identity"`
		Path              string             `json:"path"`
		Protocol          string             `json:"protocol"`
		RequestID         string             `json:"requestId"`
		RequestTime       string             `json:"requestTime"`
		RequestTimeEpoch  int64              `json:"requestTimeEpoch"`
		ResourceID        *string            `json:"resourceId"`
		ResourcePath      string             `json:"resourcePath"`
		Stage             string             `json:"stage"`
	} `json:"requestContext"`
	PathParameters  map[string]string `json:"pathParameters"`
	StageVariables  map[string]string `json:"stageVariables"`
	Body            *string           `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

func TestTheGatewayEventsLookLikeThoseFromAWS(t *testing.T) {
	t.Parallel()
	for _, e := range local.Endpoints() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			var g gateway
			strict(t, e.Name, &g)
			hasAll(t, e.Name, g)
			g.check(t)
		})
	}
}

// hasAll fails if the event lacks a field that the gateway sends even when it is null.
func hasAll(t *testing.T, name string, g gateway) {
	t.Helper()
	var event map[string]json.RawMessage
	boottest.Load(t, name).Decode(t, &event)
	var context map[string]json.RawMessage
	if err := json.Unmarshal(event["requestContext"], &context); err != nil {
		t.Fatal(err)
	}
	for of, has := range map[reflect.Type]map[string]json.RawMessage{reflect.TypeOf(g): event, reflect.TypeOf(g.RequestContext): context} {
		for i := range of.NumField() {
			if key := of.Field(i).Tag.Get("json"); has[key] == nil {
				t.Errorf("there is no %s", key)
			}
		}
	}
	identity := []string{"accessKey", "accountId", "caller", "cognitoAmr", "cognitoAuthenticationProvider", "cognitoAuthenticationType",
		"cognitoIdentityId", "cognitoIdentityPoolId", "principalOrgId", "sourceIp", "user", "userAgent", "userArn"}
	if got := slices.Sorted(maps.Keys(g.RequestContext.Identity)); !slices.Equal(got, identity) {
		t.Errorf("the identity has %v", got)
	}
}

func (g gateway) check(t *testing.T) {
	t.Helper()
	c, header := g.RequestContext, map[string]string{}
	for name, value := range g.Headers {
		header[strings.ToLower(name)] = value
	}
	same(t, "the method", g.HTTPMethod, c.HTTPMethod)
	same(t, "the path", g.Path, c.Path)
	same(t, "the host", header["host"], c.DomainName)
	same(t, "the host's first part", c.DomainName[:strings.Index(c.DomainName, ".")], c.DomainPrefix)
	same(t, "the agent", header["user-agent"], *c.Identity["userAgent"])
	forwarded := strings.Split(header["x-forwarded-for"], ", ")
	same(t, "the caller's address", forwarded[len(forwarded)-1], *c.Identity["sourceIp"])
	lasts(t, "header", g.Headers, g.MultiValueHeaders)
	lasts(t, "parameter", g.QueryStringParameters, g.MultiValueQueryStringParameters)
	g.checkBody(t, header)
}

func (g gateway) checkBody(t *testing.T, header map[string]string) {
	t.Helper()
	body := ""
	if g.Body != nil {
		body = *g.Body
	}
	if g.IsBase64Encoded {
		text, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			t.Fatalf("the body is not base64: %v", err)
		}
		body = string(text)
	}
	if length := header["content-length"]; length != strconv.Itoa(len(body)) {
		t.Errorf("the body has %d bytes, and Content-Length is %q", len(body), length)
	}
	kind := header["content-type"]
	text := strings.HasPrefix(kind, "text/") || strings.HasPrefix(kind, "application/json")
	if g.Body != nil && g.IsBase64Encoded == text {
		t.Errorf("a body of the type %q comes as base64: %v", kind, g.IsBase64Encoded)
	}
}

// lasts fails unless the single value of each name is the last of its values.
func lasts(t *testing.T, what string, one map[string]string, many map[string][]string) {
	t.Helper()
	if len(one) != len(many) {
		t.Errorf("%d names of a %s have a single value, but %d have all values", len(one), what, len(many))
	}
	for name, values := range many {
		if one[name] != values[len(values)-1] {
			t.Errorf("the %s %s is %q, not the last of %q", what, name, one[name], values)
		}
	}
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is given as %q and as %q", what, got, want)
	}
}
