package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/runexp/runexp/stages"
)

// A config is the user's own settings. Nothing of an experiment or its repository may give itself the
// permissions that are in it.
type config struct {
	AllowPython []string `yaml:"allow-python"` // folders whose experiments may run the functions in them

	file string // its path
}

// configName is the path of the configuration below the user's folder of configurations.
const configName = "runexp/config.yaml"

// maxConfig limits the configuration's size in bytes.
const maxConfig = 1 << 20

// readConfig reads the user's configuration; without a file it is empty.
func readConfig() (c config, err error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return c, err
	}
	c.file = filepath.Join(dir, configName)
	b, err := stages.ReadFile(c.file, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	} else if err != nil {
		return c, err
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, fmt.Errorf("%s: %s; it may have the line \"allow-python: [FOLDER, FOLDER]\"", c.file,
			strings.Join(strings.Fields(err.Error()), " "))
	}
	for i, folder := range c.AllowPython {
		if rest, ok := strings.CutPrefix(folder, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return c, fmt.Errorf("%s: %w", c.file, err)
			}
			folder = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(folder) {
			return c, fmt.Errorf("%s: allow-python: %q isn't an absolute path", c.file, folder)
		}
		c.AllowPython[i] = filepath.Clean(folder)
	}
	return c, nil
}

// python reports whether the configuration lets an experiment run the functions of a file. The second result
// is how the user can allow it.
func (c config) python(experiment, file string) (allowed bool, how string) {
	allowed = true
	var lacks config // what the line would allow
	for _, of := range []string{resolved(experiment), resolved(file)} {
		p := placeAt(filepath.Dir(of))
		for _, at := range []string{c.file, resolved(c.file)} {
			if _, inside := p.relative(at); inside {
				return false, fmt.Sprintf("%s; what %s allows doesn't count, since the experiment's own "+
					"folder %s has it", thisCommand(file), c.file, p.root)
			}
		}
		if allowed = allowed && c.allows(of); !c.allows(of) && !lacks.allows(of) {
			lacks.AllowPython = append(lacks.AllowPython, p.root)
		}
	}
	return allowed, fmt.Sprintf("%s, or for good by the line \"allow-python: [%s]\" in %s", thisCommand(file),
		strings.Join(lacks.AllowPython, ", "), c.file)
}

// thisCommand is how the user can always allow the functions of a file.
func thisCommand(file string) string {
	return "read " + filepath.Base(file) + ", and allow it for this command by --allow-python"
}

// allows reports whether a file, without links in its path, is in one of the allowed folders.
func (c config) allows(file string) bool {
	return slices.ContainsFunc(c.AllowPython, func(folder string) bool {
		_, inside := place{resolved(folder)}.relative(file)
		return inside
	})
}

// permission returns the function that says whether an experiment may run the functions of a file, by the
// user's configuration. It is read only where a function is named.
func permission(experiment string) func(file string) (allowed bool, how string) {
	return func(file string) (bool, string) {
		c, err := readConfig()
		if err != nil {
			return false, fmt.Sprintf("%s; the configuration allows nothing: %v", thisCommand(file), err)
		}
		return c.python(experiment, file)
	}
}

// allowed says which folders the configuration allows to run Python.
func (c config) allowed() string {
	if len(c.AllowPython) == 0 {
		return "by --allow-python alone: " + c.file + " allows no folder"
	}
	return fmt.Sprintf("in %s by %s, elsewhere by --allow-python", strings.Join(c.AllowPython, ", "), c.file)
}
