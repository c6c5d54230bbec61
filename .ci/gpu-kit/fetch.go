package main

import (
	"archive/zip"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// wheelSums are the SHA-256 of the wheels, by project.
var wheelSums = map[string]string{
	"captum":          "cda38e1d42c37591d71560bb2f5813ac4cae8d8543afac45279c7efd5945997e",
	"onnxruntime_gpu": "05d548956197b9d01f59b625de740e0d6be3593f874e241a12dc0362650ecdf7",
	"packaging":       "81383611a09c1bc0b08b76e0fd5829d7c6824c65b27a6aee339da133f4233ea2",
	"tqdm":            "c293e525e6fef9c20e8728fd4612df02a0aa31bb5fe91ecd93e123b1b7bffa73",
}

// download downloads wheels for a Linux machine's Python 3.12 and returns their paths. The libraries in them
// are those of every Python.
func download(tmp string, projects ...string) (wheels []string, err error) {
	python := cmp.Or(os.Getenv("PYTHON"), "python3")
	for _, p := range projects {
		name, _, _ := strings.Cut(p, "==")
		name = strings.ReplaceAll(name, "-", "_")
		dir := filepath.Join(tmp, name)
		cmd := exec.Command(python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
			"--no-input", "--no-deps", "--only-binary=:all:", "--implementation", "cp",
			"--python-version", "3.12", "--platform", "manylinux_2_28_x86_64", "--dest", dir, p)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", p, err, strings.TrimSpace(string(out)))
		}
		found, _ := filepath.Glob(filepath.Join(dir, "*.whl"))
		if len(found) != 1 {
			return nil, fmt.Errorf("%s: pip downloaded %d wheels", p, len(found))
		}
		if err := check(found[0], wheelSums[name]); err != nil {
			return nil, err
		}
		wheels = append(wheels, found[0])
	}
	return wheels, nil
}

func check(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != want {
		return fmt.Errorf("%s has the SHA-256 %s, not %s", filepath.Base(path), sum, want)
	}
	return nil
}

// extract writes a file of a wheel.
func extract(wheel, name, to string) error {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer z.Close()
	r, err := z.Open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// vulkanLoader returns the path of Vulkan's loader: this machine's, or that of Debian's package libvulkan1.
func vulkanLoader(tmp string) (string, error) {
	const name = "libvulkan.so.1"
	for _, dir := range []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/chromium"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name), nil
		}
	}
	cmd := exec.Command("sh", "-c", "apt-get download libvulkan1 && dpkg-deb -x libvulkan1_*.deb .")
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("there is no %s: install Debian's package libvulkan1: %w\n%s", name, err,
			strings.TrimSpace(string(out)))
	}
	found, _ := filepath.Glob(filepath.Join(tmp, "usr", "lib", "*", name))
	if len(found) == 0 {
		return "", fmt.Errorf("the package libvulkan1 has no %s", name)
	}
	return found[0], nil
}
