package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestNotebookModule runs those tests of the Python module that need no further package.
func TestNotebookModule(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		stagetest.Lacks(t, err.Error())
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-W", "error", "-m", "unittest", "discover", "-s",
		filepath.Join(root, "python", "tests"))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "python"), "PYTHONDONTWRITEBYTECODE=1",
		"NETS="+filepath.Join(root, "experiments", "quickstart"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
