package stack

import (
	"fmt"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/local"
)

// TestTheGatewayMayCallEachFunctionOnItsRoutes: the emulator calls functions without
// asking, and so shows only that the routes are right.
func TestTheGatewayMayCallEachFunctionOnItsRoutes(t *testing.T) {
	t.Parallel()
	var want []string
	for _, e := range local.Endpoints() {
		for _, r := range e.Routes { // a permission has * for any parameter, and SAM drops a slash at the end
			path := strings.NewReplacer("{name}", "*", "{id}", "*").Replace(r.Path)
			want = append(want, r.Method+" "+api.Prefix+strings.TrimSuffix(path, "/")+" "+e.Name)
		}
		if len(e.Routes) == 0 {
			want = append(want, "X-AMAZON-APIGATEWAY-ANY-METHOD /$default "+e.Name)
		}
	}
	same(t, "the permissions to call", permitted(transformed(t)), want)
}

// permitted returns the routes on which the gateway may call a function.
func permitted(all document) []string {
	var routes []string
	for _, id := range all.ofType("AWS::Lambda::Permission") {
		p := at(all.Resources[id], "Properties")
		if at(p, "Principal") != "apigateway.amazonaws.com" {
			continue
		}
		source := list(at(p, "SourceArn", "Fn::Sub"))
		_, route, _ := strings.Cut(fmt.Sprint(source[0]), "${__Stage__}/")
		method, path, _ := strings.Cut(route, "/")
		if method == "*" { // any route of the API
			method, path = "X-AMAZON-APIGATEWAY-ANY-METHOD", "$default"
		}
		function := strings.TrimSuffix(strings.TrimPrefix(show(at(p, "FunctionName")), "!Ref "), "Aliaslive")
		routes = append(routes, method+" /"+path+" "+strings.ToLower(function))
	}
	return routes
}
