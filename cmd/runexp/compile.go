package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/ort"
)

func compileVerb(f flags) *verb {
	var c registry.Compilation
	var out, noise, images, library string
	var check bool
	var seed int
	look := f.look()
	f["--method"], f["--set"], f["--target"] = &c.Method, &c.Set, &c.Target
	f["--target-input"] = &c.TargetInput
	f["--preset"], f["--own-input"], f["--batch"] = &c.Preset, &c.OwnInput, &c.Batch
	f["--noise"], f["--seed"] = &noise, &seed
	f["--out"], f["--check"], f["--images"], f["--onnxruntime"] = &out, &check, &images, &library
	return &verb{
		name: "compile", takes: arity{1, 1, "an ONNX file"},
		run: func(ctx context.Context, u *ui, args []string) error {
			switch {
			case c.Method == "" || out == "":
				return misuse("compile needs --method and --out")
			case c.Target != "" && c.TargetInput:
				return misuse("--target fixes the class that --target-input makes an input: give one")
			case noise != "" && noise != "fixed" && noise != "input":
				return misuse("--noise: %q is neither fixed nor input", noise)
			case c.OwnInput && c.Preset == "":
				return misuse("--own-input is for --preset: without a preset the input is the model's own")
			case images != "" && !check:
				return misuse("--images is for --check")
			}
			ort.Use(library)
			file, address, err := u.local(ctx, args[0], false)
			if err != nil {
				return err
			}
			if oneFile(file, out) {
				return misuse("--out is the model itself")
			}
			c.Path, c.Look, c.NoiseInput, c.Seed = file, *look, noise == "input", uint64(seed)
			return compiled(ctx, u, c, address, out, check, images)
		},
	}
}

// oneFile reports whether two paths are of one file.
func oneFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// compiled writes the file, and prints its description.
func compiled(ctx context.Context, u *ui, c registry.Compilation, model, out string, check bool,
	images string) (err error) {
	if _, err := ort.Default(); err != nil {
		return err
	}
	slot := device.NewCache(0).NewSlot(stages.Device{Class: "cpu", Threads: runtime.GOMAXPROCS(0)})
	defer slot.Begin()()
	f, err := registry.Compile(ctx, slot, c)
	switch field := (*stages.FieldError)(nil); {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return environment(err)
	case errors.As(err, &field):
		return usage(err, plan.Guess(field.Name, field.Names))
	case err != nil:
		return fmt.Errorf("%s: %w", model, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := writeWhole(out, f.ONNX); err != nil {
		return environment(err)
	}
	k, err := f.Check(ctx, images)
	if err != nil {
		return err
	}
	for _, note := range f.Notes {
		fmt.Fprintln(u.err, "note:", note)
	}
	if err := printCompiled(u, f, k, c.Path, out, check); err != nil || !check {
		return err
	}
	for _, d := range []registry.FileDeviation{k.Own, k.Usual} {
		if !(d.Share <= f.Tolerance()) {
			return fmt.Errorf("%s: the map of image %d deviates by %.2g of its largest value, and %s has a "+
				"tolerance of %.2g", out, d.Image, d.Share, f.Method, f.Tolerance())
		}
	}
	return nil
}

// printCompiled prints the file's inputs and outputs, its size and time, and the result of a check.
func printCompiled(u *ui, f *registry.CompiledFile, k registry.CheckedFile, model, out string,
	check bool) error {
	info, err := os.Stat(model)
	if err != nil {
		return environment(err)
	}
	bytes := size(int64(len(f.ONNX)))
	t := tabwriter.NewWriter(u.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "file\t%s: %s, opset %d, %d nodes\n", out, bytes, f.Opset, f.Nodes)
	fmt.Fprintf(t, "method\t%s\n", f.Method)
	for i, v := range f.Inputs {
		takes := ""
		if i == 0 {
			takes = ": " + f.Takes
		}
		fmt.Fprintf(t, "input\t%s%s\n", v.Summary(), takes)
	}
	fmt.Fprintf(t, "explains\t%s\n", f.Target)
	for _, v := range f.Outputs {
		fmt.Fprintf(t, "output\t%s\n", v.Summary())
	}
	if f.Fixed != "" {
		fmt.Fprintf(t, "batch\t%d: %s\n", f.Batch, f.Fixed)
	}
	fmt.Fprintf(t, "size\t%s of the model alone, %s of the file\n", size(info.Size()), bytes)
	alone := ""
	if k.Model > 0 {
		alone = milliseconds(k.Model) + " an image of the model alone, "
	}
	fmt.Fprintf(t, "time\t%s%s of the file, on the processor\n", alone, milliseconds(k.File))
	if check {
		fmt.Fprintf(t, "check\t%d images: the maps deviate by at most %.2g of their largest value from %s,\n"+
			"\tand by %.2g with all optimisations of ONNX Runtime, which round otherwise\n", k.Images,
			k.Own.Share, f.Method, k.Usual.Share)
	}
	return t.Flush()
}

// milliseconds writes a time.
func milliseconds(seconds float64) string {
	return strings.TrimSpace(fmt.Sprintf("%.3g ms", 1e3*seconds))
}

// writeWhole writes a file that is there whole or not at all.
func writeWhole(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".runexp-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
