// Command pack puts a built runexp into packages: a wheel, whose ONNX Runtime comes from Python's package of
// that name, or an archive that has the library next to the command. Both hold the notices of all that is
// inside.
//
//	go run ./.ci/pack wheel BINARY OUT
//	go run ./.ci/pack archive BINARY LIBRARIES OUT
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// name is what the wheel and the archive are called. In Python's index runexp is another project.
const name = "runexp_xai"

// A file of a package, by its path in it.
type file struct {
	path       string
	data       []byte
	executable bool
}

// modified is the time of all files, so that the same files make the same package.
var modified = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func main() {
	if err := pack(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(args []string) error {
	if !(len(args) == 3 && args[0] == "wheel") && !(len(args) == 4 && args[0] == "archive") {
		return errors.New("usage: pack wheel BINARY OUT | pack archive BINARY LIBRARIES OUT")
	}
	binary, out := args[1], args[len(args)-1]
	if err := portable(binary); err != nil {
		return err
	}
	version, err := versionOf(binary)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	var path string
	if args[0] == "wheel" {
		path, err = writeWheel(binary, version, out)
	} else {
		path, err = writeArchive(binary, version, args[2], out)
	}
	if err == nil {
		fmt.Println(path)
	}
	return err
}

// versionOf asks the command which release it is.
func versionOf(binary string) (string, error) {
	abs, err := filepath.Abs(binary)
	if err != nil {
		return "", err
	}
	out, err := exec.Command(abs, "version").Output()
	if err != nil {
		return "", fmt.Errorf("%s version: %w", binary, err)
	}
	words := strings.Fields(string(out))
	if len(words) < 2 || words[0] != "runexp" {
		return "", fmt.Errorf("%s version printed %q", binary, out)
	}
	return words[1], nil
}

func read(path, as string, executable bool) (file, error) {
	b, err := os.ReadFile(path)
	return file{as, b, executable}, err
}
