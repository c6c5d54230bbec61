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

// inWheels returns the library of Python's package onnxruntime, or onnxruntime-gpu, in the environments that
// the program may belong to, and the folders of environments that were looked into. The package needn't be
// installed where the program is: a virtual environment can show the packages of the Python that made it.
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

// pythons returns the folders of Python environments: the program's own, the activated ones, and those whose
// packages they show.
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
		case "home": // the folder of its python
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

// sitePackages returns the folders in which an environment may have packages: for each of its Python versions
// pip's, and Debian's; and the environment itself, which is one if pip had --target.
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

// versionedName is the name of the library itself; its providers' libraries begin alike.
var versionedName = regexp.MustCompile(`^libonnxruntime(\.so\.\d+(\.\d+)*|(\.\d+)+\.dylib)$`)

// isLibrary reports whether a file has the function that ONNX Runtime is entered by. What can't be read as an
// ELF file isn't one on Linux; other systems' files are told by their names.
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
