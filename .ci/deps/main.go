// Command deps installs the pinned ONNX Runtime library in a folder, from the package that pip or npm
// downloads. It keeps a library with the right digest.
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
	"slices"
)

// The releases of ONNX Runtime to download. The npm package is released later than the wheel; the two
// releases give the same bits on every net of TestRuntimes.
const (
	wheelVersion = "1.32.0"
	npmVersion   = "1.30.0"
)

// A platform defines the library's name and its allowed digests.
type platform struct {
	name  string   // name of the library in the folder
	wheel string   // pip's name of the platform
	npm   string   // path of the library in the npm package
	sums  []string // SHA-256 of the wheel's library and of the npm package's
}

// The wheels of all Python versions contain the same library.
var platforms = map[string]platform{
	"linux/amd64": {"libonnxruntime.so", "manylinux_2_28_x86_64", "linux/x64/libonnxruntime.so.1", []string{
		"6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f",
		"ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23",
	}},
	"linux/arm64": {"libonnxruntime.so", "manylinux_2_28_aarch64", "linux/arm64/libonnxruntime.so.1",
		[]string{
			"49852228a93995158b2a813d4df487d47a1b76b0eaa894507ef49e91b6d7954a",
			"1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76",
		}},
	"darwin/arm64": {"libonnxruntime.dylib", "macosx_14_0_arm64", "darwin/arm64/libonnxruntime.1.30.0.dylib",
		[]string{
			"fa585fabbea65b823b9a8f7e27d46aee3989d1be7e36b528203d3a1fd613aae7",
			"685d2be5dba1309c89d3a5324b7fd06a5c42f1a61bfea32d14c4cc28d072121d",
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

// install ensures that dir contains the library for the platform called name.
func install(ctx context.Context, dir, name string, log io.Writer) error {
	p, ok := platforms[name]
	if !ok {
		return fmt.Errorf("there is no ONNX Runtime %s package for %s: build the library, and set "+
			"ONNXRUNTIME_LIB to its path", wheelVersion, name)
	}
	target := filepath.Join(dir, p.name)
	switch err := check(target, p); {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(log, "deps: %v; downloading it again\n", err)
	}
	found := fetchers()
	if len(found) == 0 {
		return fmt.Errorf("neither pip nor npm is installed to download ONNX Runtime %s: install one of "+
			"them and run \"make deps\" again, or copy the library of that release to %s", wheelVersion,
			target)
	}
	var failed []error
	for _, f := range found {
		fmt.Fprintf(log, "deps: downloading ONNX Runtime %s with %s\n", f.version(), f)
		err := fetch(ctx, f, dir, target, p)
		if err == nil {
			fmt.Fprintf(log, "deps: installed %s\n", target)
			return nil
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// check returns nil if path is a library with an allowed digest.
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
	sum := hex.EncodeToString(h.Sum(nil))
	if slices.Contains(p.sums, sum) {
		return nil
	}
	return fmt.Errorf("%s has the SHA-256 %s, which isn't that of ONNX Runtime %s", path, sum, wheelVersion)
}

// fetch downloads a package, extracts the library, and moves it to target if its digest is allowed. target is
// never partially written.
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
	for _, n := range notices {
		err := os.Rename(filepath.Join(tmp, n), filepath.Join(dir, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(lib, target)
}
