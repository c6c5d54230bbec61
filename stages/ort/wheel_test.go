package ort

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestFindInWheels puts the library where pip puts it, under the names that onnxruntime's wheels use.
func TestFindInWheels(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: the names of files are those of Linux")
	}
	real := library(t).Library.Path
	const capi = "onnxruntime/capi/"
	put := func(environment, name, from string) string {
		file := filepath.Join(environment, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if from == "" {
			err := os.WriteFile(file, []byte("not a library"), 0o644)
			if err != nil {
				t.Fatal(err)
			}
		} else if err := os.Symlink(from, file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	t.Setenv("HOME", t.TempDir())
	for _, tt := range []struct{ name, site string }{
		{"a virtual environment", "lib/python3.12/site-packages/"},
		{"of a 64-bit system", "lib64/python3.9/site-packages/"},
		{"Debian's", "lib/python3/dist-packages/"},
		{"pip install --target", ""},
	} {
		environment := t.TempDir()
		t.Setenv("VIRTUAL_ENV", environment)
		put(environment, tt.site+capi+"libonnxruntime_providers_shared.so", real)
		put(environment, tt.site+capi+"libonnxruntime_providers_cuda.so.1.99.0", real)
		if lib, _ := inWheels(); strings.HasPrefix(lib, environment) {
			t.Errorf("%s: a provider's library was taken: %s", tt.name, lib)
		}
		want := put(environment, tt.site+capi+"libonnxruntime.so.1.32.0", real)
		if lib, _ := inWheels(); lib != want {
			t.Errorf("%s: got %q, want %q", tt.name, lib, want)
		}
	}

	// A virtual environment shows the packages of its Python only if told to.
	base, environment := t.TempDir(), t.TempDir()
	t.Setenv("VIRTUAL_ENV", environment)
	want := put(base, "lib/python3.12/site-packages/"+capi+"libonnxruntime.so.1.32.0", real)
	for shows, want := range map[string]string{"true": want, "false": ""} {
		text := "home = " + filepath.Join(base, "bin") + "\ninclude-system-site-packages = " + shows + "\n"
		if err := os.WriteFile(filepath.Join(environment, "pyvenv.cfg"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if lib, _ := inWheels(); lib != want && (want != "" || strings.HasPrefix(lib, base)) {
			t.Errorf("with include-system-site-packages %s: got %q, want %q", shows, lib, want)
		}
	}

	// A file of that name that isn't the library is passed over.
	put(environment, "lib/python3.13/site-packages/"+capi+"libonnxruntime.so.1.33.0", "")
	want = put(environment, "lib/python3.12/site-packages/"+capi+"libonnxruntime.so.1.32.0", real)
	if lib, _ := inWheels(); lib != want {
		t.Errorf("next to a file that is no library: got %q, want %q", lib, want)
	}
}
