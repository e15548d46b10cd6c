package notify_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/notify"
)

// posted posts an event, signed with secrets, and returns the request and its body.
func posted(t *testing.T, text, id string, at time.Time, body string) (*http.Request, string) {
	t.Helper()
	secrets, err := notify.ParseWebhookSecrets(text)
	must(t, err)
	var request *http.Request
	var sent []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		request = r
		sent, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	hooks, err := notify.NewReceivers([]string{server.URL}, secrets)
	must(t, err)
	must(t, hooks[0].Post(t.Context(), at, id, body))
	return request, string(sent)
}

// TestEventIsPostedAsTheSpecificationSays uses the vector that the libraries of
// Standard Webhooks are tested with.
func TestEventIsPostedAsTheSpecificationSays(t *testing.T) {
	t.Parallel()
	const id, event = "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`
	r, body := posted(t, secret, id, time.Unix(1614265330, 0), event)
	if r.Method != http.MethodPost || body != event {
		t.Errorf("%s %s", r.Method, body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/cloudevents+json; charset=utf-8", "Webhook-Id": id, "Webhook-Timestamp": "1614265330",
		"Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	} {
		expect.Equal(t, name, r.Header.Get(name), want)
	}
}

func TestEventsAreSignedWithBothSecretsDuringAChange(t *testing.T) {
	t.Parallel()
	one, two := "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	sign := func(text string) string {
		r, _ := posted(t, text, "1", time.Unix(1, 0), "x")
		return r.Header.Get("Webhook-Signature")
	}
	if got, want := sign(two+" "+one+"\n"), sign(two)+" "+sign(one); got != want || sign(one) == sign(two) {
		t.Errorf("the signatures are %s, want %s", got, want)
	}
}

func TestSecretHasTheFormOfTheSpecification(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("QUJD", 30)
	for text, good := range map[string]bool{
		"whsec_" + long[:32]: true, long[:32]: true, "whsec_" + long[:84]: true,
		"whsec_" + long[:28]: false, "whsec_" + long: false, "": false, " ": false, "whsec_": false, "whsec_a secret of mine, in words!": false,
		"whsec_" + long[:32] + " x": false,
	} {
		_, err := notify.ParseWebhookSecrets(text)
		expect.Equal(t, text, err == nil, good)
		if err != nil && len(text) > 6 && strings.Contains(err.Error(), text[6:]) {
			t.Errorf("the secret is in the error %v", err)
		}
	}
}

func TestNewSecretIsValidAndNotPrinted(t *testing.T) {
	t.Parallel()
	text, err := notify.NewWebhookSecret(bytes.NewReader(bytes.Repeat([]byte{255}, 24)))
	must(t, err)
	secrets, err := notify.ParseWebhookSecrets(text)
	must(t, err)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if printed := fmt.Sprintf(format, secrets); strings.Contains(printed, "255") ||
			strings.Contains(printed, "ff") {
			t.Errorf("%s shows %s", format, printed)
		}
	}
}

func TestInvalidWebhookAddressIsRefusedAndNotQuoted(t *testing.T) {
	t.Parallel()
	secrets, _ := notify.ParseWebhookSecrets("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	for _, address := range []string{
		"", "example.com/S3CR3T", "ftp://example.com/S3CR3T", "http:///S3CR3T", "http://:80/S3CR3T", "://S3CR3T",
		"https://example.com/#S3CR3T", "http://a b/S3CR3T",
	} {
		_, err := notify.NewReceivers([]string{address}, secrets)
		if err == nil || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%q: %v", address, err)
		}
	}
	many := slices.Repeat([]string{"http://example.com/"}, notify.MaxWebhooks+1)
	if _, err := notify.NewReceivers(many, secrets); err == nil {
		t.Error("too many webhooks are accepted")
	}
	if _, err := notify.NewReceivers(many[:1], nil); err == nil {
		t.Error("webhooks are accepted without a secret")
	}
}
