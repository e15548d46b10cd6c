package emulated

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// adapt removes from a transformed template what the emulator does not support. The tests of
// infra/stack check the template unchanged.
func adapt(template object) {
	resources, _ := template["Resources"].(object)
	for name, r := range resources {
		resource, _ := r.(object)
		if strings.HasPrefix(fmt.Sprint(resource["Type"]), "AWS::CodeDeploy::") {
			delete(resources, name)
		}
		delete(resource, "UpdatePolicy")
		properties, _ := resource["Properties"].(object)
		if resource["Type"] == "AWS::Lambda::EventInvokeConfig" {
			properties["Qualifier"] = "$LATEST" // the emulator supports no other
		}
		if seconds, ok := properties["Timeout"].(float64); ok && seconds < 30 { // the function answers requests
			properties["Timeout"] = seconds * moreTime
		}
		if properties["ScalingConfig"] != nil { // the emulator would turn the parameter into a string
			properties["ScalingConfig"] = object{"MaximumConcurrency": 2}
		}
		if policy, ok := properties["PolicyDocument"].(object); ok {
			policy["Statement"] = slices.DeleteFunc(list(policy["Statement"]), refusesPlainHTTP)
		}
		for _, p := range list(properties["Policies"]) {
			policy, _ := p.(object)["PolicyDocument"].(object)
			for _, s := range list(policy["Statement"]) {
				widen(s.(object))
			}
		}
	}
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

// refusesPlainHTTP reports whether a statement allows only TLS. The emulator speaks plain HTTP.
func refusesPlainHTTP(statement any) bool {
	s, _ := statement.(object)
	return s["Effect"] == "Deny" &&
		strings.Contains(fmt.Sprint(s["Condition"]), "aws:SecureTransport")
}

// widen allows what the emulator requires beyond AWS. It has a separate permission for
// PublishBatch, and supports neither resources nor conditions for SendEmail.
func widen(statement object) {
	switch statement["Action"] {
	case "sns:Publish":
		statement["Action"] = []any{"sns:Publish", "sns:PublishBatch"}
	case "ses:SendEmail":
		statement["Resource"] = "*"
		delete(statement, "Condition")
	}
}

// called matches the function in an integration's address.
var called = regexp.MustCompile(`functions/\$\{(\w+?)(?:Alias` + alias + `|\.Arn)\}`)

// routes returns the routes of the template's API.
func routes(template object) (all []route) {
	resources, _ := template["Resources"].(object)
	for _, r := range resources {
		properties, _ := r.(object)["Properties"].(object)
		body, _ := properties["Body"].(object)
		paths, _ := body["paths"].(object)
		for path, methods := range paths {
			for method, operation := range methods.(object) {
				integration, _ := operation.(object)["x-amazon-apigateway-integration"].(object)
				id := called.FindStringSubmatch(fmt.Sprint(integration["uri"]))
				if path == "/"+defaultRoute {
					path = defaultRoute
				}
				all = append(all, route{
					method:   strings.ToUpper(method),
					path:     path,
					function: id[1],
				})
			}
		}
	}
	return all
}
