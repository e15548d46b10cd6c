package emulated

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"ferry/shared/wire"
)

// look changes how the pages look, which makes a new version of their function.
func look(t *testing.T, c *Cloud) {
	d := deployEmpty(t, c, nil)
	shows := func(text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodGet,
			strings.TrimSuffix(d.Base, wire.Prefix)+"/login",
			nil,
		)
		check(t, err)
		r.Header.Set("Accept", "text/html")
		resp, err := http.DefaultClient.Do(r)
		check(t, err)
		defer resp.Body.Close()
		if page, err := io.ReadAll(resp.Body); err != nil ||
			resp.StatusCode != 200 ||
			!strings.Contains(string(page), text) {
			t.Errorf("status %d, %v: the page lacks %q: %s", resp.StatusCode, err, text, page)
		}
	}
	shows("– Ferry</title>")
	d.parameters = append(d.parameters, types.Parameter{
		ParameterKey:   aws.String("ServiceName"),
		ParameterValue: aws.String("Acme & Co."),
	})
	check(t, d.Stack.update(t.Context(), c, func(context.Context) error { return nil }))
	shows("– Acme &amp; Co.</title>")
}
