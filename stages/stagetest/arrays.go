package stagetest

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/runexp/runexp/stages/internal/npy"
)

// Arrays returns the arrays of an .npz file by name, or the one of an .npy file under the file's name without
// extension.
func Arrays(path string) (map[string]npy.Array, error) {
	arrays := map[string]npy.Array{}
	if name, single := strings.CutSuffix(filepath.Base(path), ".npy"); single {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		arrays[name], err = npy.Decode(b)
		return arrays, err
	}
	z, err := npy.OpenArchive(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	for _, name := range z.Names() {
		if arrays[name], err = z.Read(name); err != nil {
			return nil, err
		}
	}
	return arrays, nil
}
