package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

func versionVerb(flags) *verb {
	return &verb{
		name: "version",
		run: func(_ context.Context, u *ui, _ []string) error {
			fmt.Fprintln(u.out, "runexp", build())
			return nil
		},
	}
}

// release is the version of CHANGELOG.md's first entry.
const release = "0.1.0"

// build returns the release, and the origin that the Go tool has recorded in the program.
func build() string {
	commit := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value[:min(len(s.Value), 12)]
			case s.Key == "vcs.modified" && s.Value == "true":
				commit += ", changed"
			}
		}
	}
	return fmt.Sprintf("%s (commit %s), %s, %s/%s", release, commit, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}
