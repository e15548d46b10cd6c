package stack

import (
	"fmt"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/local"
)

func TestTheTransformedAPIHasEachRouteAndMayCallItsFunction(t *testing.T) {
	t.Parallel()
	stack := transformed(t)
	apis := stack.ofType("AWS::ApiGatewayV2::Api")
	if len(apis) != 1 {
		t.Fatalf("the APIs are %v, want one", apis)
	}
	paths, _ := at(stack.Resources[apis[0]], "Properties", "Body", "paths").(object)
	var got, want []string
	for path, methods := range paths {
		for method, operation := range methods.(object) {
			integration := operation.(object)["x-amazon-apigateway-integration"].(object)
			if integration["payloadFormatVersion"] != "1.0" || integration["type"] != "aws_proxy" {
				t.Errorf("%s %s is integrated as %v", method, path, integration)
			}
			got = append(got, strings.ToUpper(method)+" "+path+" "+calls(integration["uri"]))
		}
	}
	for _, e := range local.Endpoints() {
		for _, r := range e.Routes {
			want = append(want, r.Method+" "+api.Prefix+r.Path+" "+e.Name)
		}
		if len(e.Routes) == 0 {
			want = append(want, "X-AMAZON-APIGATEWAY-ANY-METHOD /$default "+e.Name)
		}
	}
	same(t, "the routes", got, want)
	for i, route := range want { // a permission has * for any parameter, and SAM drops a slash at the end
		want[i] = strings.NewReplacer("{name}", "*", "{id}", "*", "/ ", " ").Replace(route)
	}
	same(t, "the permissions to call", permitted(stack), want)
}

// calls returns the name of the function in an integration's address.
func calls(uri any) string {
	_, rest, _ := strings.Cut(fmt.Sprint(uri), "functions/${")
	id, _, _ := strings.Cut(rest, "Aliaslive}")
	return strings.ToLower(id)
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
