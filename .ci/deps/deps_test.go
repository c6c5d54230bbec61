package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestWithoutPackageManager(t *testing.T) {
	t.Setenv("PATH", "")
	dir := t.TempDir()
	err := installAll(t.Context(), dir, "linux/amd64", choice{}, io.Discard)
	want := `neither pip nor npm is installed to download ONNX Runtime 1.32.0: install one of them and run ` +
		`"make deps" again, ` +
		`or copy the library of that release to ` + filepath.Join(dir, "libonnxruntime.so")
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestUnknownPlatform(t *testing.T) {
	err := installAll(t.Context(), t.TempDir(), "plan9/386", choice{}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "plan9/386") ||
		!strings.Contains(err.Error(), "ONNXRUNTIME_LIB") {
		t.Errorf("got %v", err)
	}
}

// fake puts a pip on the PATH that runs script instead of downloading.
func fake(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pip3"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestWrongBytesAreNotInstalled(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "libonnxruntime.so")
	if err := os.WriteFile(target, []byte("something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A wheel with a library of three bytes.
	wheel := filepath.Join(t.TempDir(), "w.whl")
	writeZip(t, wheel, "onnxruntime/capi/libonnxruntime.so.1.32.0", "abc")
	fake(t, `for a in "$@"; do case "$last" in --dest) /bin/cp `+wheel+` "$a/";; esac; last=$a; done`)

	var log bytes.Buffer
	err := installAll(t.Context(), dir, "linux/amd64", choice{}, &log)
	if err == nil || !strings.Contains(err.Error(), "has the SHA-256 ba7816bf") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(log.String(), "downloading it again") {
		t.Errorf("the log doesn't say that the library was wrong: %s", &log)
	}
	if b, _ := os.ReadFile(target); string(b) != "something else" {
		t.Errorf("the library was replaced by %q", b)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".fetch-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// With -webgpu only the library that has WebGPU is accepted, which npm has and pip doesn't, and the plugin is
// taken from its wheel.
func TestWebGPU(t *testing.T) {
	const name = "libonnxruntime_providers_webgpu.so"
	dir := t.TempDir()
	wheel := filepath.Join(t.TempDir(), "w.whl")
	writeZip(t, wheel, "onnxruntime_ep_webgpu/"+name, "abc")
	fake(t, `for a in "$@"; do case "$last" in --dest) /bin/cp `+wheel+` "$a/";; esac; last=$a; done`)
	err := installAll(t.Context(), dir, "linux/amd64", choice{webgpu: true}, io.Discard)
	for _, want := range []string{"npm isn't installed to download ONNX Runtime with WebGPU",
		name + " has the SHA-256 ba7816bf"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := installAll(t.Context(), dir, "linux/arm64", choice{webgpu: true}, io.Discard); err == nil {
		t.Error("a library without WebGPU was accepted")
	}
}

// With -openvino the plugin's libraries come with it, of which one of other bytes isn't installed; a platform
// without a plugin needs none.
func TestOpenVINO(t *testing.T) {
	l := platforms["linux/amd64"].openVINOPlugin()
	wheel := filepath.Join(t.TempDir(), "w.whl")
	files := map[string]string{"onnxruntime_ep_openvino/cache.json": "no library", l.pip.file: "abc",
		strings.TrimSuffix(l.pip.file, "."+openVINOVersion): "the same, once more"}
	all := sha256.New()
	io.WriteString(all, "abc")
	for _, name := range l.beside {
		files["onnxruntime_ep_openvino/"+name] = "of " + name
		io.WriteString(all, "of "+name)
	}
	writeZips(t, wheel, files)
	fake(t, `for a in "$@"; do case "$last" in --dest) /bin/cp `+wheel+` "$a/";; esac; last=$a; done`)
	dir := t.TempDir()
	err := installAll(t.Context(), dir, "linux/amd64", choice{openVINO: true}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), l.name+" has the SHA-256 ") {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("installed: %v", left)
	}
	l.sums = []string{hex.EncodeToString(all.Sum(nil))}
	for range 2 { // the second finds a library that was changed, and replaces it
		if err := install(t.Context(), dir, l, io.Discard); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1+len(l.beside) {
			t.Errorf("installed: %v", left)
		}
		if err := check(filepath.Join(dir, l.name), l); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(filepath.Join(dir, l.beside[2]), []byte("other bytes"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := installAll(t.Context(), dir, "darwin/arm64", choice{openVINO: true}, io.Discard); err != nil {
		t.Errorf("a platform without a plugin: %v", err)
	}
}

func TestFailureIsReported(t *testing.T) {
	fake(t, `[ "$1" = --version ] || { echo no network >&2; exit 3; }`)
	err := installAll(t.Context(), t.TempDir(), "linux/amd64", choice{}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no network") {
		t.Errorf("got %v", err)
	}
}

func TestExtract(t *testing.T) {
	dir := t.TempDir()
	wheel := filepath.Join(dir, "w.whl")
	writeZip(t, wheel, "onnxruntime/capi/libonnxruntime.1.32.0.dylib", "abc")
	pack := filepath.Join(dir, "n.tgz")
	writeTar(t, pack, "package/bin/napi-v6/linux/arm64/libonnxruntime.so.1", "def")
	l := platforms["linux/arm64"].library()
	for archive, want := range map[string]string{wheel: "abc", pack: "def"} {
		f := fetcher{"pip"}
		if archive == pack {
			f = fetcher{"npm"}
		}
		to := archive + ".out"
		if err := f.extract(archive, to, l); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(to); string(b) != want {
			t.Errorf("%s gave %q, want %q", archive, b, want)
		}
	}
	if err := extractTar(pack, filepath.Join(dir, "x"), "/darwin/arm64/x"); err == nil {
		t.Error("a package without the library was accepted")
	}
}

func TestSums(t *testing.T) {
	sum := regexp.MustCompile(`^[0-9a-f]{64}$`)
	for name, p := range platforms {
		if len(p.sums) != 2 || !sum.MatchString(p.sums[0]) || !sum.MatchString(p.sums[1]) {
			t.Errorf("%s: not the sums of the wheel's and the npm package's library: %v", name, p.sums)
		}
		if !sum.MatchString(p.plugin) {
			t.Errorf("%s: not the sum of the plugin's library: %v", name, p.plugin)
		}
		if name != "linux/amd64" && p.openVINO == "" {
			continue
		}
		if name != "linux/amd64" || !sum.MatchString(p.openVINO) {
			t.Errorf("%s: not the sum of OpenVINO's libraries: %v", name, p.openVINO)
		}
	}
}
