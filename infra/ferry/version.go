package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"ferry/shared/envelope"
)

type versionCommand struct{}

func (versionCommand) Run(out console) error {
	_, err := fmt.Fprintln(out.Out, version())
	return err
}

// version describes this program in one line.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

// versionOf tells what the Go command has noted: the version, which is the commit's tag if
// it has one, and the commit with its date.
func versionOf(info *debug.BuildInfo) string {
	if info == nil {
		info = &debug.BuildInfo{}
	}
	known := map[string]string{}
	for _, s := range info.Settings {
		known[s.Key] = s.Value
	}
	commit := cmp.Or(known["vcs.revision"], "unknown")
	if known["vcs.modified"] == "true" {
		commit += " with changes"
	}
	return fmt.Sprintf("ferry %s, commit %s, date %s, interface %s, %s %s/%s",
		cmp.Or(info.Main.Version, "(devel)"), commit, cmp.Or(known["vcs.time"], "unknown"), envelope.APIVersion,
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
