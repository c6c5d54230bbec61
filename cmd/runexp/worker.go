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

// faultText is what a fault in a library ends the command with, behind the signal's name.
const faultText = " in ONNX Runtime: a model made it crash, or memory ran out; a run goes on with the same command, and a model's crash then costs its own cells\n"

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
	registry.Watch(filepath.Join(store, "running"), stages.Sum([]byte(text)).Short())
}
