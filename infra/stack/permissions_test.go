package stack

import (
	"slices"
	"strings"
	"testing"
)

// granted are the permissions of a function in the form of uses, but for its log.
func granted(t *testing.T, tpl template, f fn) []string {
	t.Helper()
	var all []string
	for _, s := range tpl.policies(f) {
		for _, action := range s.Actions {
			service, _, _ := strings.Cut(action, ":")
			switch service {
			case "logs":
			case "dynamodb":
				for _, key := range s.Keys {
					all = append(all, action+" "+key)
				}
			case "s3":
				resource := strings.NewReplacer("!GetAtt ", "", "!Sub ", "", ".Arn", "", "${", "", "}", "").Replace(s.Resources[0])
				all = append(all, action+" "+resource)
			default:
				all = append(all, action)
			}
		}
	}
	return all
}

// TestAFunctionMayDoWhatItDoesAndNothingElse drives each function through all
// that it does with its ports, and only those, and compares.
func TestAFunctionMayDoWhatItDoesAndNothingElse(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for name, f := range tpl.functions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario, ok := scenarios()[name]
			if !ok {
				t.Fatalf("there is no scenario for %s", name)
			}
			s := newStage(t, name)
			scenario(s)
			want := s.uses.sorted()
			ports := readMain(t, name).ports()
			if slices.Contains(ports, "ssmkey") {
				want = append(want, "ssm:GetParameter")
			}
			if name == "linkkey" {
				want = append(want, "ssm:PutParameter")
			}
			same(t, "the permissions of "+name, granted(t, tpl, f), want)
			if got := usedPorts(s.uses.sorted()); !slices.Equal(got, slices.DeleteFunc(ports, func(p string) bool { return p == "ssmkey" })) {
				t.Errorf("%s opens the ports %v, and uses %v", name, ports, got)
			}
		})
	}
}

func usedPorts(uses []string) []string {
	var ports []string
	for _, u := range uses {
		port := "dynamotable"
		if strings.HasPrefix(u, "s3:") {
			port = "s3blobs"
		}
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// TestTheKeyIsReadByThoseWhoMintLinks says it once more: the key opens all
// files to whoever has it, and so no function else may read it.
func TestTheKeyIsReadByThoseWhoMintLinks(t *testing.T) {
	t.Parallel()
	var readers []string
	tpl := read(t)
	for name, f := range tpl.functions() {
		if slices.Contains(granted(t, tpl, f), "ssm:GetParameter") {
			readers = append(readers, name)
		}
	}
	same(t, "readers of the key", readers, []string{
		"authforget", "downloadlist", "downloadlistbackup", "filesdelete", "filesget", "filesrestore", "notificationsstop", "sweep", "upload", "uploads",
	})
}
