package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/runexp/runexp/pipeline/fetch/fetchtest"
)

// hubKey is the key of a script's hub among its values.
type hubKey struct{}

// hubCommand returns the command by which a script has a Hugging Face Hub of its own: "hub start", whose
// address is then in HF_ENDPOINT; "hub put org/repo/file FILE"; "hub silent", an error if anything was asked
// for since the last time.
func hubCommand(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		hub := ts.Value(hubKey{}).(**fetchtest.Hub)
		switch {
		case len(args) == 1 && args[0] == "start":
			*hub = fetchtest.New(t)
			(*hub).Token = "hf_secretsecret"
			ts.Setenv("HF_ENDPOINT", (*hub).URL)
			ts.Setenv("HF_TOKEN", (*hub).Token)
			ts.Setenv("XDG_CACHE_HOME", ts.MkAbs("cache"))
		case len(args) == 3 && args[0] == "put":
			b, err := os.ReadFile(ts.MkAbs(args[2]))
			ts.Check(err)
			(*hub).Put(args[1], b)
		case len(args) == 1 && args[0] == "silent":
			if list := (*hub).Requests(); (len(list) > 0) != neg {
				ts.Fatalf("asked %q", list)
			}
		default:
			ts.Fatalf("usage: hub start | put PATH FILE | silent")
		}
	}
}
