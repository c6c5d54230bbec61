// Command deps installs the pinned ONNX Runtime library in a folder, from the package that pip or npm
// downloads. It keeps a library with the right digest. With -webgpu it installs the library that has WebGPU
// compiled in, and WebGPU's plugin for other libraries; with -openvino OpenVINO's plugin, where there is one.
//
//	go run ./.ci/deps lib
//	go run ./.ci/deps -webgpu lib/webgpu
//	go run ./.ci/deps -openvino lib/openvino
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The releases to download. The npm package of ONNX Runtime is released later than the wheel; the two
// releases give the same bits on every net of TestRuntimes.
const (
	wheelVersion    = "1.32.0"
	npmVersion      = "1.30.0"
	pluginVersion   = "0.4.0"
	openVINOVersion = "1.8.1"
)

// A platform defines the libraries' names and allowed digests.
type platform struct {
	name   string   // name of the library in the folder
	wheel  string   // pip's name of the platform
	npm    string   // path of the library in the npm package
	sums   []string // SHA-256 of the wheel's library and of the npm package's
	webgpu bool     // the npm package's has WebGPU
	plugin string   // SHA-256 of WebGPU's plugin

	openVINO string // SHA-256 of OpenVINO's plugin with what it loads; "" where there is none
}

// The wheels of all Python versions contain the same library.
var platforms = map[string]platform{
	"linux/amd64": {"libonnxruntime.so", "manylinux_2_28_x86_64", "linux/x64/libonnxruntime.so.1", []string{
		"6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f",
		"ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23",
	}, true, "9f76e3dc4459421958ad086a9da03bf7e5de9289e9a3a56e28bbb459773dec81",
		"40959d357ce73c0764fb847877890dead07f811c5ab3f3fb05cd6dcd1008abd8"},
	"linux/arm64": {"libonnxruntime.so", "manylinux_2_28_aarch64", "linux/arm64/libonnxruntime.so.1",
		[]string{
			"49852228a93995158b2a813d4df487d47a1b76b0eaa894507ef49e91b6d7954a",
			"1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76",
		}, false, "720e1288e7e465f924db44b88a98a9d1c543eba3fbb2ff801cf2545f5e7f0279", ""},
	"darwin/arm64": {"libonnxruntime.dylib", "macosx_14_0_arm64", "darwin/arm64/libonnxruntime.1.30.0.dylib",
		[]string{
			"fa585fabbea65b823b9a8f7e27d46aee3989d1be7e36b528203d3a1fd613aae7",
			"685d2be5dba1309c89d3a5324b7fd06a5c42f1a61bfea32d14c4cc28d072121d",
		}, true, "894aa43c308c97afe58f6485b8411962181a39b27170f5f210cc7503adb52850", ""},
}

// A library is a file to install, and where it is to be had.
type library struct {
	title    string   // for people, without its release
	name     string   // in the folder
	sums     []string // SHA-256 that it may have, together with beside
	pip, npm source   // without pack where there is none
	beside   []string // files of the wheel's folder that it loads from its own, in the order of the digest
}

// A source is a package of a package manager.
type source struct {
	pack, version string
	platform      string // pip's name of it
	file          string // what the library's path in the package begins with, for npm ends with
}

// library returns ONNX Runtime.
func (p platform) library() library {
	return library{"ONNX Runtime", p.name, p.sums,
		source{"onnxruntime", wheelVersion, p.wheel, "onnxruntime/capi/libonnxruntime."},
		source{"onnxruntime-node", npmVersion, "", "/" + p.npm}, nil}
}

// withWebGPU returns ONNX Runtime with WebGPU compiled in.
func (p platform) withWebGPU() library {
	l := p.library()
	l.title, l.sums, l.pip = "ONNX Runtime with WebGPU", p.sums[1:], source{}
	return l
}

// webGPUPlugin returns WebGPU's plugin.
func (p platform) webGPUPlugin() library {
	name := strings.Replace(p.name, "libonnxruntime", "libonnxruntime_providers_webgpu", 1)
	return library{"WebGPU's plugin", name, []string{p.plugin},
		source{"onnxruntime-ep-webgpu", pluginVersion, p.wheel, "onnxruntime_ep_webgpu/" + name}, source{},
		nil}
}

// openVINOPlugin returns OpenVINO's plugin, and of its libraries those for processors.
func (p platform) openVINOPlugin() library {
	const name = "libonnxruntime_providers_openvino_plugin.so"
	return library{"OpenVINO's plugin", name, []string{p.openVINO},
		source{"onnxruntime-ep-openvino", openVINOVersion, p.wheel,
			"onnxruntime_ep_openvino/" + name + "." + openVINOVersion}, source{},
		[]string{"libopenvino.so.2641", "libopenvino_onnx_frontend.so.2641",
			"libopenvino_ir_frontend.so.2641", "libopenvino_intel_cpu_plugin.so", "libtbb.so.12",
			"libtbbmalloc.so.2", "libtbbbind_2_5.so.3", "libhwloc.so.15"}}
}

func main() {
	var what choice
	flag.BoolVar(&what.webgpu, "webgpu", false, "install the library with WebGPU, and its plugin")
	flag.BoolVar(&what.openVINO, "openvino", false, "install OpenVINO's plugin")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: go run ./.ci/deps [-webgpu|-openvino] FOLDER") }
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := installAll(ctx, flag.Arg(0), runtime.GOOS+"/"+runtime.GOARCH, what, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "deps:", err)
		os.Exit(1)
	}
}

// A choice is which libraries to install; ONNX Runtime for processors if there is none.
type choice struct{ webgpu, openVINO bool }

// installAll ensures that dir contains the libraries for the platform called name.
func installAll(ctx context.Context, dir, name string, what choice, log io.Writer) error {
	p, ok := platforms[name]
	if !ok {
		return fmt.Errorf("there is no ONNX Runtime %s package for %s: build the library, and set "+
			"ONNXRUNTIME_LIB to its path", wheelVersion, name)
	}
	switch {
	case what.openVINO && p.openVINO == "":
		fmt.Fprintf(log, "deps: there is no plugin of OpenVINO for %s, and so no bfloat16\n", name)
		return nil
	case what.openVINO:
		return install(ctx, dir, p.openVINOPlugin(), log)
	case !what.webgpu:
		return install(ctx, dir, p.library(), log)
	}
	if !p.webgpu {
		return fmt.Errorf("there is no package of ONNX Runtime with WebGPU for %s", name)
	}
	return errors.Join(install(ctx, dir, p.withWebGPU(), log), install(ctx, dir, p.webGPUPlugin(), log))
}

// install ensures that dir contains a library.
func install(ctx context.Context, dir string, l library, log io.Writer) error {
	target := filepath.Join(dir, l.name)
	switch err := check(target, l); {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(log, "deps: %v; downloading it again\n", err)
	}
	found := fetchers(l)
	if len(found) == 0 {
		switch "" {
		case l.pip.pack:
			return fmt.Errorf("npm isn't installed to download %s %s", l.title, l.npm.version)
		case l.npm.pack:
			return fmt.Errorf("pip isn't installed to download %s %s", l.title, l.pip.version)
		}
		return fmt.Errorf("neither pip nor npm is installed to download %s %s: install one of them and run "+
			"\"make deps\" again, or copy the library of that release to %s", l.title, l.pip.version, target)
	}
	var failed []error
	for _, f := range found {
		fmt.Fprintf(log, "deps: downloading %s %s with %s\n", l.title, f.of(l).version, f)
		err := fetch(ctx, f, dir, target, l)
		if err == nil {
			fmt.Fprintf(log, "deps: installed %s\n", target)
			return nil
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// check returns nil if path is a library with an allowed digest, and so are the files beside it.
func check(path string, l library) error {
	h := sha256.New()
	for _, name := range append([]string{filepath.Base(path)}, l.beside...) {
		f, err := os.Open(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			return err
		}
		_, err = io.Copy(h, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if slices.Contains(l.sums, sum) {
		return nil
	}
	return fmt.Errorf("%s has the SHA-256 %s, which isn't that of %s", path, sum, l.title)
}

// fetch downloads a package, extracts the library, and moves it to target if its digest is allowed. target is
// never partially written.
func fetch(ctx context.Context, f fetcher, dir, target string, l library) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(dir, ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	archive, err := f.download(ctx, tmp, f.of(l))
	if err != nil {
		return err
	}
	lib := filepath.Join(tmp, l.name)
	if err := f.extract(archive, lib, l); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	if err := check(lib, l); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	for _, n := range l.beside {
		if err := os.Rename(filepath.Join(tmp, n), filepath.Join(dir, n)); err != nil {
			return err
		}
	}
	for _, n := range notices {
		err := os.Rename(filepath.Join(tmp, n), filepath.Join(dir, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(lib, target)
}
