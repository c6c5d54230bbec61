package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"github.com/runexp/runexp/registry"
)

const doctorHelp = `usage: runexp doctor

Says what runexp finds on this machine: ONNX Runtime and how it was found, devices,
the store. Exit code 3 if experiments can't run.

  --onnxruntime PATH   the library, or a folder that has it
  --store DIR          where results are kept

example:
  runexp doctor
`

func doctorVerb() *verb {
	f := newFlags("doctor")
	engine := newEngineFlags(f)
	return &verb{
		name: "doctor", short: "runtime, devices, store: found where, or what to do", help: doctorHelp, flags: f,
		run: func(_ context.Context, u *ui, args []string) error {
			if err := none("doctor", args); err != nil {
				return err
			}
			return doctor(u, engine)
		},
	}
}

func doctor(u *ui, engine *engineFlags) error {
	t := tabwriter.NewWriter(u.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "runexp\t%s\n", build())
	registry.UseRuntime(engine.runtime)
	rt, err := registry.OpenRuntime()
	ill := err != nil
	if ill {
		fmt.Fprintf(t, "runtime\t%v\n", err)
		fmt.Fprintf(t, "\trun \"make deps\" in a clone of runexp, or install ONNX Runtime\n")
	} else {
		fmt.Fprintf(t, "runtime\tONNX Runtime %s at %s (%s)\n", rt.Version, rt.Path, rt.How)
	}
	fmt.Fprintf(t, "cpu\t%d cores, %s\n", runtime.NumCPU(), instructions())
	if !ill {
		fmt.Fprintf(t, "cuda\t%s\n", cuda(rt))
	}
	p, err := here()
	if err != nil {
		return err
	}
	dir := engine.store
	if dir == "" {
		dir = p.store()
	}
	var text string
	if engine.store == "" {
		err = p.real(dir)
	}
	if err != nil {
		text = "not usable: " + err.Error()
	} else {
		text, err = writable(dir)
	}
	fmt.Fprintf(t, "store\t%s, %s\n", dir, text)
	if err := t.Flush(); err != nil {
		return err
	}
	if ill || err != nil {
		return &exitError{code: exitEnvironment}
	}
	return nil
}

func cuda(rt registry.Runtime) string {
	if err := rt.CUDA(0); err != nil {
		return "not usable: " + err.Error()
	}
	n := 1
	for rt.CUDA(n) == nil && n < 64 {
		n++
	}
	return fmt.Sprintf("usable, device 0 … %d", n-1)
}

// writable tries whether files can be made in dir, or in the folder that it would
// be made in.
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
		return "not writable: " + err.Error(), err
	}
	f.Close()
	return text, os.Remove(f.Name())
}
