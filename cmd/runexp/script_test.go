package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/runexp/runexp/pipeline/fetch/fetchtest"
	"github.com/runexp/runexp/stages/ort"
)

func TestMain(m *testing.M) {
	lateFor, lateEvery = 3*time.Second, 200*time.Millisecond // on this machine's own disk
	testscript.Main(m, programs)
}

// programs are the command and variations of it that tests start, by their names.
var programs = map[string]func(){
	"runexp": main, "runexp-counting": countingMain, "runexp-dying": dyingMain,
	"runexp-golden": goldenMain, "runexp-peak": peakMain, "runexp-scaled": scaledMain,
	"runexp-sleeping": sleepingMain,
}

// The scripts say what the command promises, one behaviour a file, readable by someone who has never seen the
// code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Values[hubKey{}] = new(*fetchtest.Hub)
			e.Setenv("ONNXRUNTIME_LIB", os.Getenv("ONNXRUNTIME_LIB"))
			root, err := filepath.Abs("../..")
			e.Setenv("NETS", filepath.Join(root, "experiments", "quickstart"))
			e.Setenv("PICTURES", filepath.Join(root, "stages", "internal", "picture", "testdata"))
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"hub": hubCommand(t),
			"pack": packFolder, "pipe": makePipe, "remember": rememberFolders, "untouched": untouchedFolders},
		Condition: func(name string) (bool, error) {
			if name == "mount" {
				return exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", os.TempDir()).Run() ==
					nil, nil
			}
			if name != "runtime" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			// Where every test is asked for, a missing runtime fails the script.
			if os.Getenv("RUNEXP_REQUIRE") == "1" || os.Getenv("CI") == "true" {
				return true, nil
			}
			_, err := ort.Default()
			return err == nil, nil
		},
	})
}
