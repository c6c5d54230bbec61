package ort

import (
	"bufio"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// inWheels looks for the library of Python's package onnxruntime or onnxruntime-gpu in the environments to
// which the program may belong, and returns the folders of the environments it searched. The package
// needn't be in the program's own environment: a virtual environment can show the packages of the Python
// that made it.
func inWheels() (lib string, environments []string) {
	for _, environment := range pythons() {
		for _, site := range sitePackages(environment) {
			if file := newest(filepath.Join(site, "onnxruntime", "capi")); file != "" && isLibrary(file) {
				return file, environments
			}
		}
		environments = append(environments, environment)
	}
	return "", environments
}

// pythons returns the folders of Python environments: the program's own, the activated ones, and the ones
// whose packages these show.
func pythons() (list []string) {
	add := func(dirs ...string) {
		for _, dir := range dirs {
			if dir != "" && !slices.Contains(list, dir) {
				list = append(list, dir)
			}
		}
	}
	if exe, err := os.Executable(); err == nil {
		add(filepath.Dir(filepath.Dir(exe)))
	}
	add(os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX"))
	for _, dir := range slices.Clone(list) {
		base, virtual := basePython(dir)
		add(base)
		if base != "" || !virtual {
			if home, err := os.UserHomeDir(); err == nil {
				add(filepath.Join(home, ".local"))
			}
			add("/usr/local", "/usr")
		}
	}
	return list
}

// basePython reports whether a folder is a virtual environment, and returns the folder of the Python that
// made it if the environment shows its packages.
func basePython(dir string) (base string, virtual bool) {
	f, err := os.Open(filepath.Join(dir, "pyvenv.cfg"))
	if err != nil {
		return "", false
	}
	defer f.Close()
	shows := false
	for s := bufio.NewScanner(f); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), "=")
		switch value = strings.TrimSpace(value); strings.TrimSpace(name) {
		case "home": // the folder of that Python
			base = filepath.Dir(value)
		case "include-system-site-packages":
			shows = strings.EqualFold(value, "true")
		}
	}
	if !shows {
		return "", true
	}
	return base, true
}

// sitePackages returns the folders in which an environment may have packages: pip's and Debian's for each
// of its Python versions; and the environment itself, into which pip --target installs.
func sitePackages(environment string) []string {
	list := []string{environment}
	for _, pattern := range []string{"lib/python3*/site-packages", "lib64/python3*/site-packages",
		"lib/python3*/dist-packages", "lib/python3/dist-packages"} {
		found, _ := filepath.Glob(filepath.Join(environment, pattern)) // the pattern is well-formed
		slices.Reverse(found)                                          // newer Pythons first
		list = append(list, found...)
	}
	return list
}

// versionedName matches the library itself; the names of its providers' libraries have the same beginning.
var versionedName = regexp.MustCompile(`^libonnxruntime(\.so\.\d+(\.\d+)*|(\.\d+)+\.dylib)$`)

// isLibrary reports whether a file exports ONNX Runtime's entry point. On Linux a file must be readable as
// ELF; on other systems the name decides.
func isLibrary(file string) bool {
	if strings.HasSuffix(file, ".dylib") {
		return true
	}
	f, err := elf.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	return err == nil && slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
		return s.Name == "OrtGetApiBase" && s.Section != elf.SHN_UNDEF
	})
}
