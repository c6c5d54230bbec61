package ort

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPluginWithoutDevice: a plugin that offers no device is registered once, and each session has the same
// error.
func TestPluginWithoutDevice(t *testing.T) {
	r := library(t)
	file := filepath.Join(t.TempDir(), "plugin.so")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RUNEXP_TEST_PLUGIN", file)
	registered := 0
	p := &plugin{name: "none", provider: "NoneExecutionProvider", variable: "RUNEXP_TEST_PLUGIN",
		get: "pip install none", register: func(*Runtime, string, string) error {
			if registered++; registered > 1 {
				return errors.New("library is already registered under none")
			}
			return nil
		}}
	for range 2 {
		_, err := p.devices(r)
		var none *NoDevice
		if !errors.As(err, &none) || !strings.Contains(err.Error(), "offers no device") {
			t.Error(err)
		}
	}
}
