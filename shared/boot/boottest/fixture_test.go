package boottest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/boottest"
	"ferry/shared/notify"
)

func TestAnAnswerIsComparedWithTheExpectedOne(t *testing.T) {
	t.Parallel()
	page := boottest.Expect{Status: 200, Headers: map[string]string{"Etag": "^x$", "Link": "^$"}, Body: "^hello$"}
	for _, c := range []struct {
		name, answer, wrong string
		expect              boottest.Expect
	}{
		{"a whole answer", `{"batchItemFailures":[]}`, "", boottest.Expect{Body: `^\{"batchItemFailures":\[\]\}$`}},
		{"another answer", `{"batchItemFailures":["1"]}`, "the body is", boottest.Expect{Body: `^\{"batchItemFailures":\[\]\}$`}},
		{"nothing expected", `{}`, "does not say", boottest.Expect{}},
		{"a response", `{"statusCode":200,"multiValueHeaders":{"Etag":["x"]},"body":"hello"}`, "", page},
		{"a response in base64", `{"statusCode":200,"multiValueHeaders":{"Etag":["x"]},"body":"aGVsbG8=","isBase64Encoded":true}`, "", page},
		{"bytes", `{"statusCode":200,"body":"AAE=","isBase64Encoded":true}`, "", boottest.Expect{Status: 200, Base64: "AAE="}},
		{"other bytes", `{"statusCode":200,"body":"AAI=","isBase64Encoded":true}`, "the body is", boottest.Expect{Status: 200, Base64: "AAE="}},
		{"another status", `{"statusCode":404,"body":"hello"}`, "the status is 404, want 200", page},
		{"another header", `{"statusCode":200,"multiValueHeaders":{"Etag":["y"]},"body":"hello"}`, "Etag is", page},
		{"a header too many", `{"statusCode":200,"multiValueHeaders":{"Etag":["x"],"Link":["y"]},"body":"hello"}`, "Link is", page},
		{"not a response", `null and void`, "not one for the gateway", page},
		{"not base64", `{"statusCode":200,"multiValueHeaders":{"Etag":["x"]},"body":"?","isBase64Encoded":true}`, "not base64", page},
	} {
		err := c.expect.Check([]byte(c.answer))
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.wrong)
		}
	}
}

func TestEveryFixtureBelongsToAFunction(t *testing.T) {
	t.Parallel()
	root := boottest.Root(t)
	names, err := boottest.Names(root)
	if err != nil || !slices.Contains(names, "feedbacksms") {
		t.Fatalf("the fixtures are %v, %v", names, err)
	}
	for _, name := range names {
		f := boottest.Load(t, name)
		if _, err := os.Stat(filepath.Join(root, "functions", f.Function, "main.go")); err != nil {
			t.Errorf("%s belongs to no function: %v", name, err)
		}
		if f.Expect.Body == "" && f.Expect.Base64 == "" {
			t.Errorf("%s expects nothing", name)
		}
	}
}

func TestTheNoticesAreInTheStateThatEachEventNeeds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]notify.State{"email": notify.Queued, "feedback": notify.Sent, "feedbacksms": notify.Sent} {
		p := boottest.Ports(t, nil)
		f := boottest.Load(t, name)
		if err := f.Notices(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		all, err := notify.States(t.Context(), p.Table, []string{boottest.MailNotice, boottest.TextNotice})
		if err != nil || len(all) != 2 || all[0].State() != want || all[1].State() != want {
			t.Errorf("for %s there are %+v, %v", name, all, err)
		}
	}
}
