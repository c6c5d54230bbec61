//go:build !linux

package ort

import (
	"fmt"
	"os"
)

// newScratch returns an empty file in the temporary folder, for inputs that the library takes only by path.
func newScratch() (f *os.File, path string, remove func(), err error) {
	f, err = os.CreateTemp("", "runexp-*.onnx")
	if err != nil {
		return nil, "", nil, fmt.Errorf("%w (TMPDIR names the folder for temporary files)", err)
	}
	return f, f.Name(), func() {
		f.Close()
		os.Remove(f.Name())
	}, nil
}
