package main

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// glibc is the newest release of the C library whose symbols the command may use: manylinux_2_28 in the
// wheel's name promises it. Debian 10, Ubuntu 20.04 and Red Hat 8 have it or a newer one.
var glibc = [2]int{2, 28}

// system are the libraries that every Linux with glibc has.
var system = []string{"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libresolv.so.2",
	"librt.so.1", "ld-linux-x86-64.so.2"}

// portable returns an error if an ELF file for Linux needs a newer C library, or others than the system's.
func portable(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	if f.Machine != elf.EM_X86_64 {
		return fmt.Errorf("%s is for %v, not for x86-64", path, f.Machine)
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, l := range libraries {
		if !slices.Contains(system, l) {
			return fmt.Errorf("%s needs %s, which not every Linux has", path, l)
		}
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return err
	}
	for _, s := range symbols {
		v, ok := strings.CutPrefix(s.Version, "GLIBC_")
		var major, minor int
		if !ok {
			continue
		}
		if _, err := fmt.Sscanf(v, "%d.%d", &major, &minor); err != nil {
			return fmt.Errorf("%s needs %s of %s", path, s.Name, s.Version)
		}
		if major > glibc[0] || major == glibc[0] && minor > glibc[1] {
			const text = "%s needs %s of glibc %s: at most %d.%d is allowed, build it by make portable"
			return fmt.Errorf(text, path, s.Name, v, glibc[0], glibc[1])
		}
	}
	return nil
}
