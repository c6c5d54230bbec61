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

// build returns what the Go tool wrote into the program about its origin.
func build() string {
	version := "of unknown version"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
				version = s.Value
			}
		}
	}
	return fmt.Sprintf("%s, %s, %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
