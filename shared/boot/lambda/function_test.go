package lambda_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/envelope"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestAFunctionWithoutPortsNeedsNothingFromAWS(t *testing.T) {
	t.Parallel()
	for stack, metrics := range map[string]bool{"": false, "ferry": true} {
		f, err := lambda.New(environment(map[string]string{"FERRY_METRICS": stack}))
		apitest.Must(t, err)
		if r := send(t, f.Handler(named(t, "openapi")), f.Ports, load(t, "openapi")); r.StatusCode != 200 {
			t.Errorf("status %d: %s", r.StatusCode, r.Body)
		}
		if p := f.Ports; p.CountWait <= 0 || p.CountWait > 50*time.Millisecond || p.LinkMemory <= 0 || p.LinkMemory > time.Second {
			t.Errorf("a count waits for %s, and a link is remembered for %s", p.CountWait, p.LinkMemory)
		}
		if _, got := f.Ports.Log.Handler().(*lambda.MetricsHandler); got != metrics {
			t.Errorf("for the stack %q the log has metrics: %v", stack, got)
		}
	}
}

func TestAFunctionDoesNotStartWithWrongSettings(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]string{
		"a setting":   {"FERRY_MAX_BODY": "4 MB"},
		"credentials": {},
	} {
		open := func(*lambda.Cloud, *api.Ports) {}
		if _, err := lambda.New(environment(values), open); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	keys := map[string]string{"AWS_REGION": "r", "AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "s", "FERRY_SMS_COUNTRIES": "UK"}
	if _, err := lambda.New(environment(keys), lambda.Check(file.CheckCountries)); err == nil || !strings.Contains(err.Error(), "no country UK") {
		t.Errorf("a country that does not exist: %v", err)
	}
}

func TestAFunctionThatCannotBeginAnswersAndTriesAgain(t *testing.T) {
	t.Parallel()
	local := boottest.Ports(t, nil)
	calls := 0
	f, err := lambda.New(environment(map[string]string{"AWS_REGION": "r", "AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "s"}),
		func(c *lambda.Cloud, p *api.Ports) {
			p.Table = local.Table
			c.First(func(context.Context) error {
				if calls++; calls == 1 {
					return errors.New("the parameter store is not there")
				}
				p.Key = local.Key
				return nil
			})
		})
	apitest.Must(t, err)
	f.Ports.Log, f.Ports.Hasher, f.Ports.Throttle = local.Log, local.Hasher, local.Throttle
	h := f.Handler(named(t, "downloadlist"))
	event := load(t, "downloadlist")
	if r := send(t, h, f.Ports, event); r.StatusCode != 500 || strings.Contains(r.Body, "parameter") {
		t.Errorf("the first request: status %d: %s", r.StatusCode, r.Body)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if r := send(t, h, f.Ports, event); r.StatusCode != 200 || !strings.Contains(r.Body, envelope.List) {
				t.Errorf("a later request: status %d: %s", r.StatusCode, r.Body)
			}
		})
	}
	wg.Wait()
	apitest.Equal(t, "calls", calls, 2)
}
