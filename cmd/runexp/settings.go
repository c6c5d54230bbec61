package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
)

// out is the folder of a narrowed or overridden run: one for each set of overrides, so
// that results of different settings never stand in one folder.
func (p place) out(name string, o *plan.Overrides) string {
	return filepath.Join(p.root, ".runexp", "out", name, settings(o))
}

// longestSettings is how much of overrides a folder's name tells.
const longestSettings = 48

// settings names overrides: by themselves where a folder can be called so, else by what
// can be shown of them and a digest.
func settings(o *plan.Overrides) string {
	parts := append(slices.Clone(o.Set), slices.Sorted(slices.Values(o.Only))...) // of two assignments the later one holds
	if o.Limit > 0 {
		parts = append(parts, fmt.Sprintf("limit=%d", o.Limit))
	}
	text := strings.Join(parts, ",")
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-=,", r) {
			return r
		}
		return '-'
	}, text)
	if name = strings.TrimLeft(name, "."); name == text && len(name) <= longestSettings {
		return name
	}
	return fmt.Sprintf("%s-%.4x", name[:min(len(name), longestSettings-9)], sha256.Sum256([]byte(strings.Join(parts, "\x00"))))
}
