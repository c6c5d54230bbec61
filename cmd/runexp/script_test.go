package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/runexp/runexp/pipeline/fetch/fetchtest"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

func TestMain(m *testing.M) {
	lateFor, lateEvery = 3*time.Second, 200*time.Millisecond // on this machine's own disk
	testscript.Main(m, programs)
}

// programs are the command and variations of it that tests start, by their names.
var programs = map[string]func(){
	"runexp": main, "runexp-counting": countingMain, "runexp-dying": dyingMain,
	"runexp-golden": goldenMain, "runexp-peak": peakMain, "runexp-scaled": scaledMain,
	"runexp-rounding": roundingMain, "runexp-sleeping": sleepingMain,
}

// The scripts say what the command promises, one behaviour a file, readable by someone who has never seen the
// code. Under the race detector, one in three has it in the programs that it starts.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	raced := scripts
	if stagetest.Race() {
		raced = stagetest.Sample(t, 3, scripts)
		t.Log("the scripts that are left out run without the race detector")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Values[hubKey{}] = new(*fetchtest.Hub)
			e.Setenv("ONNXRUNTIME_LIB", os.Getenv("ONNXRUNTIME_LIB"))
			name := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-") + ".txtar"
			if stagetest.Race() && !slices.Contains(raced, filepath.Join("testdata", "script", name)) {
				dir, err := undetected()
				if err != nil {
					return err
				}
				e.Setenv("PATH", dir+string(os.PathListSeparator)+e.Getenv("PATH"))
			}
			root, err := filepath.Abs("../..")
			e.Setenv("NETS", filepath.Join(root, "experiments", "quickstart"))
			e.Setenv("TEXTS", filepath.Join(root, "experiments", "text"))
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
