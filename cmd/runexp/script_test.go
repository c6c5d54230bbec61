package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"runexp": main, "runexp-counting": countingMain, "runexp-dying": dyingMain, "runexp-scaled": scaledMain,
	})
}

// The scripts say what the command promises, one behaviour a file, readable by
// someone who has never seen the code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("ONNXRUNTIME_LIB", os.Getenv("ONNXRUNTIME_LIB"))
			return nil
		},
	})
}
