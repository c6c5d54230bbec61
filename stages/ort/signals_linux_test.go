package ort_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/ort"
)

// What Go makes of a fault in its own code stays: a panic that may be recovered. One that isn't ends the
// process with the code.
func TestCatchFaults(t *testing.T) {
	const code = 70
	mode := os.Getenv("CATCH_FAULTS")
	if mode == "" {
		for mode, want := range map[string]int{"recovered": 0, "no function": 0, "panic": code} {
			cmd := exec.Command(os.Args[0], "-test.run=^TestCatchFaults$")
			cmd.Env = append(os.Environ(), "CATCH_FAULTS="+mode)
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != want ||
				strings.Contains(string(out), "in a library") {
				t.Errorf("%s: exit code %d, want %d\n%s", mode, got, want, out)
			}
		}
		return
	}
	ort.CatchFaults(" in a library\n", code)
	if mode == "panic" {
		go panic("nobody recovers this")
		select {}
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	if mode == "no function" {
		var f func()
		f()
	}
	var p *int
	*p = 1
}
