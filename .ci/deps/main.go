// Command deps puts the pinned ONNX Runtime library into a folder, out of the
// package that pip or npm fetches, whichever the machine has. A library that is
// there and is the right one is left alone.
//
//	go run ./.ci/deps lib
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
)

// Version is the release of ONNX Runtime that the Go binding in go.mod pairs with.
const version = "1.24.1"

// A platform says what the library is called there and which bytes it may have.
type platform struct {
	name  string // what programs look for in the folder
	wheel string // pip's word for the platform
	npm   string // the library inside the npm package
	sums  []string
}

// The wheels of all Python versions hold the same library; npm's is another build
// of the same release.
var platforms = map[string]platform{
	"linux/amd64": {"libonnxruntime.so", "manylinux_2_27_x86_64", "linux/x64/libonnxruntime.so.1", []string{
		"94ac52f650e195b784587e1cb7d25b4bf074048b50fa9a7127795b2ed34db22e",
		"53ef1ac028dd1b05554b8da28d9159eb3876f99868193d2aaa6e67f0243c23d4",
	}},
	"linux/arm64": {"libonnxruntime.so", "manylinux_2_27_aarch64", "linux/arm64/libonnxruntime.so.1", []string{
		"31d6df98d3a2942ce10472109f988037f330dad6cb1c19e214fd2b1327315ee0",
		"7954e8bdedb497f830c6a679e818d98399b7f4d81ade1126c3e0be74d28111ab",
	}},
	"darwin/arm64": {"libonnxruntime.dylib", "macosx_14_0_arm64", "darwin/arm64/libonnxruntime.1.24.1.dylib", []string{
		"644ea9751a5e7e56dff293d2a7c3d78f18f8b404e85bade791c0d40a3b950553",
		"7ad6507ad64d3b02aebfae6380c024ff188939cd8a7a493ec18028e034c8275c",
	}},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./.ci/deps FOLDER")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := install(ctx, os.Args[1], runtime.GOOS+"/"+runtime.GOARCH, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "deps:", err)
		os.Exit(1)
	}
}

// install makes sure that dir holds the library for the platform called name.
func install(ctx context.Context, dir, name string, log io.Writer) error {
	p, ok := platforms[name]
	if !ok {
		return fmt.Errorf("there is no ONNX Runtime %s package for %s: build the library, and set ONNXRUNTIME_LIB to its path", version, name)
	}
	target := filepath.Join(dir, p.name)
	switch err := check(target, p); {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(log, "deps: %v; fetching it again\n", err)
	}
	found := fetchers()
	if len(found) == 0 {
		return fmt.Errorf("neither pip nor npm is there to fetch ONNX Runtime %s: install one of them and run \"make deps\" again, or put the library of that release at %s yourself", version, target)
	}
	var failed []error
	for _, f := range found {
		fmt.Fprintf(log, "deps: fetching ONNX Runtime %s with %s\n", version, f)
		err := fetch(ctx, f, dir, target, p)
		if err == nil {
			fmt.Fprintf(log, "deps: %s is in place\n", target)
			return nil
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// check returns nil if path is a library that p allows.
func check(path string, p platform) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	got := hex.EncodeToString(h.Sum(nil))
	for _, want := range p.sums {
		if got == want {
			return nil
		}
	}
	return fmt.Errorf("%s has the SHA-256 %s, which isn't that of ONNX Runtime %s", path, got, version)
}

// fetch downloads a package, takes the library out of it, and moves that to
// target if it's the right one. Nothing half done is ever at target.
func fetch(ctx context.Context, f fetcher, dir, target string, p platform) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(dir, ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	archive, err := f.download(ctx, tmp, p)
	if err != nil {
		return err
	}
	lib := filepath.Join(tmp, p.name)
	if err := f.extract(archive, lib, p); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	if err := check(lib, p); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	return os.Rename(lib, target)
}
