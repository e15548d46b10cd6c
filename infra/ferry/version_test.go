package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionTellsVersionCommitAndDate(t *testing.T) {
	t.Parallel()
	settings := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{
				Key:   "vcs.revision",
				Value: "e0b789c40b9e",
			}, {Key: "vcs.time", Value: "2026-11-22T03:53:00Z"}, {Key: "vcs.modified", Value: modified},
		}
	}
	for want, info := range map[string]*debug.BuildInfo{
		"ferry v1.2.0, commit e0b789c40b9e, date 2026-11-22T03:53:00Z, interface v1 (3.6.0), data format 1, go": {
			Main:     debug.Module{Version: "v1.2.0"},
			Settings: settings("false"),
		},
		"ferry v1.2.0+dirty, commit e0b789c40b9e with changes, date 2026-11-22T03:53:00Z, interface v1 (3.6.0), data format 1, go": {
			Main:     debug.Module{Version: "v1.2.0+dirty"},
			Settings: settings("true"),
		},
		"ferry (devel), commit unknown, date unknown, interface v1 (3.6.0), data format 1, go": nil,
	} {
		if got := version(info); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q, want %q...", got, want)
		}
	}
	info, _ := debug.ReadBuildInfo()
	runFerry(t, t.TempDir(), "", "version").prints(t, exitOK, version(info)+"\n")
}
