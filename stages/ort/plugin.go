package ort

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	onnxruntime "github.com/yalue/onnxruntime_go"
)

// A plugin is a library with a provider, which a package of Python distributes.
type plugin struct {
	name     string // under which it is registered
	provider string // ONNX Runtime's name of the provider
	module   string // the package's folder
	file     string // the library's name, without ending
	variable string // the environment variable that holds the path of the file or of its folder
	lacking  string // the reason where there is none
	get      string // the command that installs it
	// register registers the file under the name; nil: as usual.
	register func(r *Runtime, name, file string) error

	mu         sync.Mutex // guards the fields below: a process registers a plugin once
	known      bool       // to the library, whether it offers devices or none
	registered []onnxruntime.EpDevice
}

func (p *plugin) fileName() string {
	if runtime.GOOS == "darwin" {
		return p.file + ".dylib"
	}
	return p.file + ".so"
}

// find looks for the plugin: at the variable's path, next to the library, and in the Python environments to
// which the program may belong.
func (p *plugin) find(library string) (string, error) {
	if path := os.Getenv(p.variable); path != "" {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, p.fileName())
		}
		if !regular(path) {
			return "", &NoDevice{fmt.Sprintf("$%s names no plugin: %s is no file", p.variable, path), p.get}
		}
		return filepath.Abs(path)
	}
	places := []string{filepath.Dir(library)}
	for _, environment := range pythons() {
		for _, site := range sitePackages(environment) {
			places = append(places, filepath.Join(site, p.module))
		}
	}
	for _, dir := range places {
		if file := filepath.Join(dir, p.fileName()); regular(file) {
			return file, nil
		}
	}
	return "", &NoDevice{p.lacking, p.get}
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// devices registers the plugin, unless that is done, and returns its devices, of which there is one.
func (p *plugin) devices(r *Runtime) ([]onnxruntime.EpDevice, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.registered != nil {
		return p.registered, nil
	}
	file, err := p.find(r.Library.Path)
	if err != nil {
		return nil, err
	}
	register := p.register
	if register == nil {
		register = func(_ *Runtime, name, file string) error {
			return onnxruntime.RegisterExecutionProviderLibrary(name, file)
		}
	}
	if !p.known {
		if err := register(r, p.name, file); err != nil {
			return nil, p.notPlugin(file, r.Version, err)
		}
		p.known = true
	}
	devices, err := onnxruntime.GetEpDevices()
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		if d.EpName() == p.provider {
			p.registered = append(p.registered, d)
		}
	}
	if p.registered == nil {
		return nil, &NoDevice{fmt.Sprintf("the plugin %s offers no device", file), p.upgrade()}
	}
	return p.registered, nil
}

func (p *plugin) upgrade() string { return strings.Replace(p.get, "install", "install --upgrade", 1) }

// notPlugin explains why a file can't be registered.
func (p *plugin) notPlugin(file, version string, err error) error {
	text := err.Error()
	if strings.Contains(text, "Failed to load library") || strings.Contains(text, "Failed to get symbol") {
		return &NoDevice{fmt.Sprintf("%s is no plugin of ONNX Runtime (%s)", file,
			strings.TrimPrefix(plainly(err), file+": ")), p.get}
	}
	return &NoDevice{fmt.Sprintf("the plugin %s doesn't fit ONNX Runtime %s (%s)", file, version,
		plainly(err)), strings.Replace(p.upgrade(), "--upgrade", "--upgrade onnxruntime", 1)}
}
