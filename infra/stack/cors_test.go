package stack

import (
	"slices"
	"testing"

	"ferry/shared/envelope"
)

// TestTheGatewayLetsPagesDoWhatTheServerLetsThem compares with package cors.
func TestTheGatewayLetsPagesDoWhatTheServerLetsThem(t *testing.T) {
	t.Parallel()
	c := ifAsked(t, read(t), "Api")
	for name, want := range map[string][]string{
		"AllowMethods": envelope.Methods(), "AllowHeaders": envelope.Headers(), "ExposeHeaders": envelope.Exposed(),
	} {
		if got := texts(at(c, name)); !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := at(c, "MaxAge"); got != int(envelope.MaxAge.Seconds()) {
		t.Errorf("MaxAge is %v", got)
	}
	if got, want := show(at(c, "AllowOrigins")), origins; got != want || at(c, "AllowCredentials") != nil {
		t.Errorf("the origins are %s, want %s", got, want)
	}
}

// origins is the parameter in a form that holds whether or not SAM puts in its
// value before CloudFormation does.
const origins = "!Split [, map[Ref:CorsOrigins]]"

// ifAsked returns what a resource says of pages of other origins, which is
// nothing as long as no origin is given.
func ifAsked(t *testing.T, tpl document, id string) any {
	t.Helper()
	choice := list(at(tpl.Resources[id], "Properties", "CorsConfiguration", "Fn::If"))
	if len(choice) != 3 || choice[0] != "HasCors" || show(choice[2]) != "!Ref AWS::NoValue" {
		t.Fatalf("%s: %v", id, choice)
	}
	return choice[1]
}

func TestPagesSendPartsToOneBucketAndReadFromBoth(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for bucket, methods := range map[string][]string{"FilesBucket": {"GET", "HEAD", "PUT"}, "BackupBucket": {"GET", "HEAD"}} {
		rules := list(at(ifAsked(t, tpl, bucket), "CorsRules"))
		if len(rules) != 1 {
			t.Fatalf("%s: %v", bucket, rules)
		}
		if got := texts(at(rules[0], "AllowedMethods")); !slices.Equal(got, methods) {
			t.Errorf("%s: the methods are %v", bucket, got)
		}
		if got := show(at(rules[0], "AllowedOrigins")); got != origins {
			t.Errorf("%s: the origins are %s", bucket, got)
		}
		if !slices.Contains(texts(at(rules[0], "ExposedHeaders")), "ETag") {
			t.Errorf("%s: the ETag cannot be read", bucket)
		}
		sum := slices.Contains(texts(at(rules[0], "AllowedHeaders")), "X-Amz-Checksum-Crc64nvme")
		if sum != slices.Contains(methods, "PUT") {
			t.Errorf("%s: a checksum may be sent: %v", bucket, sum)
		}
	}
}

func texts(v any) []string {
	var all []string
	for _, e := range list(v) {
		all = append(all, show(e))
	}
	return all
}
