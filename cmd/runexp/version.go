package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

const versionHelp = `usage: runexp version

Prints which build of runexp this is, and of which Go.

example:
  runexp version
`

func versionVerb() *verb {
	return &verb{
		name: "version", short: "which build this is", help: versionHelp, flags: newFlags("version"),
		run: func(_ context.Context, u *ui, args []string) error {
			if err := none("version", args); err != nil {
				return err
			}
			_, err := fmt.Fprintln(u.out, "runexp", build())
			return err
		},
	}
}

// build says what the Go tool wrote into the program about its origin.
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
