package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"github.com/runexp/runexp/pipeline/fetch"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
)

func doctorVerb(f flags) *verb {
	engine := f.engine()
	return &verb{
		name: "doctor",
		run: func(_ context.Context, u *ui, args []string) error {
			t := tabwriter.NewWriter(u.out, 0, 0, 2, ' ', 0)
			defer t.Flush()
			fmt.Fprintf(t, "runexp\t%s\n", build())
			ort.Use(engine.runtime)
			rt, missing := ort.Default()
			if missing != nil {
				fmt.Fprintf(t, "runtime\t%v\n", missing)
				fmt.Fprintf(t, "\tinstall the package onnxruntime with pip where runexp is, "+
					"or run \"make deps\" in a clone\n")
			} else {
				lib := rt.Library
				fmt.Fprintf(t, "runtime\tONNX Runtime %s at %s (%s)\n", rt.Version, lib.Path, lib.How)
			}
			fmt.Fprintf(t, "cpu\t%d cores, %s\n", runtime.NumCPU(), instructions(stages.Float32))
			if missing == nil {
				for _, line := range precisions(rt, "cpu") {
					fmt.Fprintf(t, "\t%s\n", line)
				}
			}
			if missing == nil {
				for _, class := range stages.DeviceClasses[1:] {
					for i, line := range devices(rt, class) {
						fmt.Fprintf(t, "%s\t%s\n", []string{class, ""}[min(i, 1)], line)
					}
				}
			}
			fmt.Fprintf(t, "python\t%s\n", pythonHere())
			p, err := here()
			if err != nil {
				return err
			}
			dir, err := engine.folder(p)
			text := ""
			if err == nil {
				text, err = writable(dir)
			}
			if err != nil {
				text = "not usable: " + err.Error()
			}
			fmt.Fprintf(t, "store\t%s, %s\n", dir, text)
			if files, err := fetch.Open(); err != nil {
				fmt.Fprintf(t, "fetched\tnot usable: %v\n", err)
			} else {
				fmt.Fprintf(t, "fetched\t%s, from https:// and %s\n", files.Dir, files.Hub.Endpoint)
			}
			if missing != nil || err != nil {
				return &exitError{code: exitEnvironment}
			}
			return nil
		},
	}
}

// pythonHere says which interpreter runs functions in Python, and where the user allows it.
func pythonHere() string {
	text, err := exec.LookPath(registry.Interpreter)
	if err != nil {
		text = "no " + registry.Interpreter + " in PATH"
	}
	c, err := readConfig()
	if err != nil {
		return text + "; the configuration allows nothing: " + err.Error()
	}
	return text + ", " + c.allowed()
}

// devices returns a line for each adapter of a class, or the reason why there is none and a remedy.
func devices(rt *ort.Runtime, class string) (lines []string) {
	usable, others, err := rt.Devices(class)
	var none *ort.NoDevice
	switch {
	case errors.As(err, &none) && none.Remedy != "":
		return []string{"not usable: " + none.Reason, none.Remedy}
	case err != nil:
		return []string{"not usable: " + err.Error()}
	}
	if len(others) > 0 {
		lines = []string{class + ":0 is the first of these that ONNX Runtime takes:"}
		for _, a := range append(usable, others...) {
			lines = append(lines, adapter(a))
		}
		return append(lines, precisions(rt, class)...)
	}
	for i, a := range usable {
		lines = append(lines, fmt.Sprintf("%s:%d, %s", class, i, adapter(a)))
	}
	return append(lines, precisions(rt, class)...)
}

// precisions returns a line for float32 and for each other precision of a class, with what it lacks here.
func precisions(rt *ort.Runtime, class string) (lines []string) {
	lines = []string{stages.Float32}
	for _, p := range ort.ProviderOf(class).Precisions {
		err := rt.Has(stages.Device{Class: class, Precision: p.Name})
		var none *ort.NoDevice
		switch {
		case p.Unmeasured:
			lines = append(lines, "no "+p.Name+": it isn't measured yet")
		case errors.As(err, &none):
			lines = append(lines, "no "+p.Name+": "+none.Reason, none.Remedy)
		case err != nil:
			lines = append(lines, "no "+p.Name+": "+err.Error())
		default:
			lines[0] += ", " + p.Name
		}
	}
	lines[0] = "precision: " + lines[0]
	return lines
}

// adapter describes a GPU.
func adapter(a ort.Adapter) string {
	text := a.Name
	if a.Software {
		text += " (imitated by the processor, slow)"
	}
	if a.Driver != "" {
		text += ", driver " + a.Driver
	}
	if a.Memory > 0 {
		text += fmt.Sprintf(", %.1f GB", float64(a.Memory)/1e9)
	}
	return text
}

// writable checks that files can be made in dir, or, if it doesn't exist, in the folder that would contain
// it.
func writable(dir string) (string, error) {
	at, text := dir, "writable"
	for {
		if _, err := os.Stat(at); err == nil {
			break
		}
		at, text = filepath.Dir(at), "not there yet"
	}
	f, err := os.CreateTemp(at, ".doctor-*")
	if err != nil {
		return "", err
	}
	f.Close()
	return text, os.Remove(f.Name())
}
