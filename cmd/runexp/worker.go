package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
)

// workerVerb is what the command calls itself with for what might end it: see
// [registry.UseWorkers]. No user needs it, so no help names it.
const workerVerb = "worker"

const faultText = " in ONNX Runtime: a model made it crash; the same command goes on from here, and what such a model computes then fails alone\n"

// watchModels has the command note in the store which models it uses. What is noted by one
// build and runtime says nothing about another.
func watchModels(store, runtime string) {
	text := build()
	exe, _ := os.Executable()
	lib, _ := registry.FindRuntime(runtime)
	for _, file := range []string{exe, lib} {
		if info, err := os.Stat(file); err == nil {
			text += fmt.Sprintf("\x00%s\x00%d\x00%d", file, info.Size(), info.ModTime().UnixNano())
		}
	}
	registry.CatchFaults(faultText, exitBug)
	registry.Watch(filepath.Join(store, "running"), stages.Sum([]byte(text)).Short())
}
