package main

import (
	"archive/zip"
	"debug/buildinfo"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNotices checks that the notices of all modules in the command, and of the C code in them, are there
// whole.
func TestNotices(t *testing.T) {
	b, err := thirdParty("")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := linked()
	if err != nil {
		t.Fatal(err)
	}
	files, legal := 0, regexp.MustCompile(`(?i)licen[cs]e|copying|notice|patents`)
	for _, m := range modules {
		err := filepath.WalkDir(m.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.Contains(path, "testdata") || filepath.Ext(path) == ".go" ||
				!legal.MatchString(d.Name()) {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			if !strings.Contains(string(b), m.Name+": ") || !strings.Contains(string(b),
				strings.TrimSpace(string(text))) {
				t.Errorf("%s of %s is missing", path, m.Name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 20 || !strings.Contains(string(b), "libwebp") {
		t.Errorf("%d files", files)
	}
}

func TestOldestRuntime(t *testing.T) {
	b, err := os.ReadFile("../../stages/ort/ort.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `const Version = "`+oldestRuntime+`"`) {
		t.Errorf("the wheel accepts ONNX Runtime %s, the command another one", oldestRuntime)
	}
}

// TestPortable refuses the command as go build makes it on a newer system, and what is no command.
func TestPortable(t *testing.T) {
	if err := portable("pack_test.go"); err == nil {
		t.Error("a text was accepted")
	}
	glibc = [2]int{2, 1}
	defer func() { glibc = [2]int{2, 28} }()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	if err := portable(sh); err == nil || !strings.Contains(err.Error(), "at most 2.1 is allowed") &&
		!strings.Contains(err.Error(), "not for x86-64") {
		t.Errorf("a program of a newer C library: %v", err)
	}
}

// TestPackages installs the packages as a user does who has neither Go nor a library, and runs the
// quickstart. make test-wheel makes the packages and runs it.
func TestPackages(t *testing.T) {
	dist := os.Getenv("RUNEXP_PACKAGES")
	if dist == "" {
		t.Skip("RUNEXP_PACKAGES isn't set: make test-wheel runs this test")
	}
	t.Run("wheel", func(t *testing.T) { testWheel(t, only(t, dist, "*.whl")) })
	t.Run("archive", func(t *testing.T) { testArchive(t, only(t, dist, "*.tar.gz")) })
}

func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d files are called %s in %s", len(found), pattern, dir)
	}
	return found[0]
}

// A machine is where a user works: a folder and a PATH.
type machine struct {
	*testing.T
	dir, path string
}

// run runs a program, with nothing of this process's settings but those for pip, and returns its output.
func (m machine) run(args ...string) string {
	m.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = m.dir
	cmd.Env = []string{"PATH=" + m.path, "HOME=" + m.dir}
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "PIP_") || strings.Contains(strings.ToLower(e), "_proxy=") ||
			strings.HasPrefix(e, "SSL_CERT_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (m machine) wants(out, text string) {
	m.Helper()
	if !strings.Contains(out, text) {
		m.Errorf("the output lacks %q:\n%s", text, out)
	}
}

func testWheel(t *testing.T, wheel string) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	if real, err := exec.Command(python, "-c", "import sys; print(sys.executable)").Output(); err == nil {
		python = strings.TrimSpace(string(real)) // PATH may have a shim of a version manager
	}
	home := t.TempDir()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(home, "venv", "bin")
	m := machine{t, home, bin} // no Go
	m.run(python, "-m", "venv", "venv")
	pip := func(args ...string) string {
		t.Helper()
		return m.run(append([]string{filepath.Join(bin, "python"), "-m", "pip", "install", "--quiet",
			"--disable-pip-version-check", "--only-binary=:all:", "--cache-dir", filepath.Join(cache, "pip")},
			args...)...)
	}

	// Without an extra there is no library, and the command tells how to get it.
	pip(wheel)
	runexp := filepath.Join(bin, "runexp")
	m.wants(m.run("/bin/sh", "-c", runexp+" doctor || true"), "install the package onnxruntime with pip")
	pip(wheel + "[cpu,notebook]")
	if err := portable(runexp); err != nil {
		t.Error(err)
	}
	version := strings.Split(filepath.Base(wheel), "-")[1]
	m.wants(m.run(runexp, "--version"), "runexp "+version+" ")
	m.wants(m.run(runexp, "doctor"), "site-packages/onnxruntime/capi/libonnxruntime.so.")

	m.run(runexp, "new", "quickstart", "try")
	m.run(runexp, "check", "try/quickstart.yaml")
	m.wants(m.run(runexp, "run", "try/quickstart.yaml", "--limit", "4"), "quickstart/limit=4")

	module, err := filepath.Abs("testdata/module.py")
	if err != nil {
		t.Fatal(err)
	}
	m.wants(m.run(filepath.Join(bin, "python"), module), "all is well")
	testContents(t, wheel, runexp)

	// The extra for GPUs adds the plugin, which the command finds; the machine may lack what else it needs.
	const none = "this ONNX Runtime has no WebGPU"
	m.wants(m.run(runexp, "doctor"), none)
	pip(wheel + "[webgpu]")
	if out := m.run(runexp, "doctor"); strings.Contains(out, none) {
		t.Errorf("the plugin isn't found:\n%s", out)
	}
}

// testContents checks the wheel's notices by the modules that the command names itself.
func testContents(t *testing.T, wheel, runexp string) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	legal := map[string]string{}
	for _, f := range z.File {
		if strings.Contains(f.Name, "/licenses/") {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			legal[filepath.Base(f.Name)] = string(b)
		}
		if strings.Contains(f.Name, "libonnxruntime") {
			t.Errorf("the wheel contains %s", f.Name)
		}
	}
	info, err := buildinfo.ReadFile(runexp)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) < 10 || !strings.Contains(legal["LICENSE"], "Apache License") {
		t.Errorf("%d modules; the licence has %d bytes", len(info.Deps), len(legal["LICENSE"]))
	}
	for _, d := range info.Deps {
		if !strings.Contains(legal["THIRD_PARTY.txt"], "\n"+d.Path+" "+d.Version+": LICENSE") {
			t.Errorf("the notices lack %s %s", d.Path, d.Version)
		}
	}
	for _, text := range []string{"The Go standard library", "libwebp", "zig",
		"GNU C library: lib/libc/glibc/LICENSES"} {
		if !strings.Contains(legal["THIRD_PARTY.txt"], text) {
			t.Errorf("the notices lack %s", text)
		}
	}
}

func testArchive(t *testing.T, archive string) {
	m := machine{t, t.TempDir(), "/usr/bin:/bin"}
	m.run("tar", "-xzf", archive)
	m.dir = strings.TrimSuffix(only(t, m.dir, "*/runexp"), "/runexp")
	if err := portable(filepath.Join(m.dir, "runexp")); err != nil {
		t.Error(err)
	}
	m.path = m.dir
	m.wants(m.run("./runexp", "doctor"), "lib next to the program")
	m.run("./runexp", "new", "quickstart")
	m.run("./runexp", "run", "quickstart.yaml", "--limit", "4", "--only", "method=constant,saliency,random")
	for _, name := range []string{"LICENSE", "THIRD_PARTY.txt", "lib/LICENSE", "lib/ThirdPartyNotices.txt"} {
		if info, err := os.Stat(filepath.Join(m.dir, name)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
