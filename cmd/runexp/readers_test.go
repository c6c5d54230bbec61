package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readers are the files that read what somebody else may have written, with the constants that bound what
// all of it takes, not only each part; SECURITY.md tells the bounds. After "own" stands why nobody else
// writes it, or who reads it within a bound.
var readers = map[string]string{
	"cmd/runexp/build.go":           "own: this program's file",
	"cmd/runexp/config.go":          "maxConfig",
	"cmd/runexp/pin.go":             "own: the experiment, which was parsed within maxExperimentBytes",
	"cmd/runexp/quickstart.go":      "own: files of the quickstart, which are compared",
	"cmd/runexp/sharelog.go":        "own: the log of a share",
	"cmd/runexp/starter_verdict.go": "own: a list that it wrote before",
	"pipeline/fetch/download.go":    "maxBytes mostRestarts allAttempts",
	"pipeline/fetch/hub.go": "own: the user's token, and refs of the hub's tools, each " +
		"within a limit",
	"pipeline/fetch/manifest.go":         "own: the cache's manifests",
	"pipeline/fetch/unpack.go":           "maxBytes",
	"pipeline/plan/files.go":             "own: names alone",
	"pipeline/plan/parse.go":             "maxExperimentBytes",
	"pipeline/plan/source.go":            "maxExperimentBytes",
	"pipeline/publish/dir.go":            "readLimit folderLimit",
	"pipeline/publish/pictures.go":       "maxInflated",
	"pipeline/publish/render_tables.go":  "folderLimit fieldsLimit mostColumns",
	"pipeline/publish/revision.go":       "folderLimit outLimit",
	"stages/attribute/external_files.go": "maxMap",
	"stages/dataset/columns.go":          "own: what folder_list.go read",
	"stages/dataset/content.go":          "own: names alone",
	"stages/dataset/folder_label.go":     "own: what folder_list.go read",
	"stages/dataset/folder_left.go":      "maxListed",
	"stages/dataset/folder_remarks.go":   "listStart bytesRead maxImage",
	"stages/dataset/folder_list.go":      "maxText maxLines",
	"stages/dataset/folder_objects.go":   "maxImage",
	"stages/dataset/folder_text.go":      "own: what folder_list.go read",
	"stages/dataset/folder_walk.go":      "maxListed",
	"stages/dataset/framing.go":          "maxImage",
	"stages/dataset/sample.go":           "own: names alone",
	"stages/internal/annotation/coco.go": "maxFile maxAnnotation maxElements maxCategories",
	"stages/internal/annotation/voc.go":  "maxXML maxObjects maxDepth",
	"stages/internal/archive/archive.go": "own: what was unpacked",
	"stages/internal/archive/cache.go":   "own: the cache's notes; archives are digested in pieces",
	"stages/internal/archive/tar.go":     "defaultLimits",
	"stages/internal/archive/unpack.go":  "defaultLimits folderBytes longestName deepest",
	"stages/internal/archive/zip.go":     "defaultLimits",
	"stages/internal/npy/archive.go":     "maxArrays",
	"stages/model/target.go":             "maxVectors",
	"stages/internal/npy/stack.go":       "maxHeader maxRank",
	"stages/internal/textfile/csv.go":    "maxRecord maxColumns maxEntries",
	"stages/internal/textfile/index.go":  "maxRecord maxEntries maxName mostBad",
	"stages/internal/wordpiece/load.go":  "maxBytes",
	"stages/internal/onnx/external.go":   "MaxBytes",
	"stages/internal/onnx/gen/main.go":   "own: a tool of the project",
	"stages/ort/inuse.go":                "own: what this machine's processes use",
	"stages/ort/inuse_unix.go":           "largestInUse",
	"stages/ort/ort.go":                  "maxLibrary",
	"stages/ort/profile.go":              "maxProfile",
	"stages/ort/provider_webgpu.go":      "maxLibrary",
	"stages/ort/room.go":                 "own: what the kernel tells",
	"stages/ort/simplify.go":             "maxModel",
	"stages/ort/wheel.go":                "own: Python's environment",
	"stages/model/declared.go":           "maxLabels",
	"stages/function/process.go":         "maxHead",
	"stages/segments/external.go":        "maxLabels",
	"stages/score/external.go":           "maxScores maxColumns",
	"stages/internal/texttest/text.go":   "own: of tests",
	"stages/stagetest/arrays.go":         "own: of tests",
}

var reads = regexp.MustCompile(`^(os\.(ReadFile|Open|ReadDir)|io\.ReadAll|fs\.ReadDir|` +
	`stages\.(OpenFile|ReadFile|ReadAll)|(csv|zip|gzip|tar)\.NewReader|` +
	`(json|xml|yaml)\.NewDecoder|bufio\.NewScanner)$`)

// TestReadersAreBounded: a file that opens or parses what others wrote is listed above, with constants that
// its package has. pipeline/store, whose records have lengths and checksums of their own, tests its readers
// itself.
func TestReadersAreBounded(t *testing.T) {
	if inUndetected(t) {
		return
	}
	found := map[string]bool{}
	for _, top := range []string{"stages", "pipeline", "cmd"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(path string, d fs.DirEntry,
			err error) error {
			name := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
				strings.HasPrefix(name, "pipeline/store/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					of, _ := s.X.(*ast.Ident)
					found[name] = found[name] || of != nil && reads.MatchString(of.Name+"."+s.Sel.Name)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, is := range found {
		if is && readers[name] == "" {
			t.Errorf("%s reads files, and readers_test.go doesn't say what bounds that", name)
		}
	}
	for name, bounds := range readers {
		if !found[name] {
			t.Errorf("%s reads no files any more", name)
		}
		if strings.HasPrefix(bounds, "own: ") {
			continue
		}
		declared := constants(t, filepath.Join("../..", filepath.Dir(name)))
		for bound := range strings.FieldsSeq(bounds) {
			if !slices.Contains(declared, bound) {
				t.Errorf("%s: its package has no %s", name, bound)
			}
		}
	}
}

// constants returns the names of a package's constants and variables.
func constants(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok {
						for _, n := range v.Names {
							names = append(names, n.Name)
						}
					}
				}
			}
		}
	}
	return names
}
