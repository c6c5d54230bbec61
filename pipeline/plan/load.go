package plan

import (
	"path/filepath"

	"github.com/runexp/runexp/stages"
)

// A Catalog finds stages by name. The registry's sets are catalogs.
type Catalog interface {
	Lookup(name string) (*stages.Stage, bool)
	Names() []string // sorted
}

// A Translator is a catalog that knows the names which other libraries have for stages.
type Translator interface {
	Elsewhere(name string) string // a hint for a name without family, or ""
}

// Overrides are the flags that narrow or override an experiment.
type Overrides struct {
	// Set holds assignments such as maps.with.steps=64, axes.model.vgg.path=x.onnx and seed=3. Paths in them
	// are relative to the working folder.
	Set []string
	// Only holds lines such as method=ig,saliency: the ids to keep of an axis.
	Only []string
	// Precision, if set, is that of all stages of [Perturbing] with the parameter; see [stages.Precise].
	Precision string
	// Limit is the largest number of sources a cell may use; 0 means all.
	Limit int
	// Fits, if set, is called with every cell that has no other error. Its error is a diagnostic, at a
	// parameter if it wraps a [stages.FieldError].
	Fits func(*Cell) error
	// Python lets the experiment run functions in files of Python, which it names as uses: FILE.py:NAME.
	// Without it, and unless Allows does, such a stage is an error, and its file isn't read.
	Python bool
	// Allows, if set, reports whether the functions of a file may run, and otherwise how the user can
	// allow it.
	Allows func(file string) (allowed bool, how string)
	// Function returns the stage that such a function is.
	Function func(uses, file string) (*stages.Stage, error)
	// Remote, if set, returns the local file to which an address, https://… or hf://…, is fetched. The
	// address alone decides it: the file needn't exist.
	Remote func(address string) (file string, err error)
}

// Load reads, checks and expands an experiment file. If the experiment has errors, they are returned as
// [Diags], and the plan can only be counted: stages that don't exist are assumed to accept anything.
func Load(file string, cat Catalog, o Overrides) (*Plan, error) {
	data, err := readExperiment(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, data, filepath.Dir(file), cat, o)
}

// Parse is [Load] for an experiment in memory: name is for messages, the paths in src are relative to dir.
// It reads no file except the one that extends names.
func Parse(name string, src []byte, dir string, cat Catalog, o Overrides) (*Plan, error) {
	return newLoader(cat, o).load(&sourceText{name: name, dir: dir, data: src})
}

// maxCells bounds a plan. A hundred thousand is a large study.
const maxCells = 1_000_000

// A loader turns an experiment's text into a plan.
type loader struct {
	diagnostics
	catalog Catalog
	o       Overrides
	limit   int // of cells
	exp     *experimentDecl
	sets    map[string]*yamlNode // by stage: the parameters in --set
	remotes map[string]*Remote   // by local file
}

func newLoader(cat Catalog, o Overrides) *loader {
	return &loader{catalog: cat, o: o, limit: maxCells, sets: map[string]*yamlNode{},
		remotes: map[string]*Remote{}}
}

func (l *loader) load(src *sourceText) (*Plan, error) {
	root := l.read(src)
	if root != nil {
		root = l.extend(root)
	}
	if root == nil {
		return nil, l.sorted()
	}
	if l.experiment(l.override(root)); len(l.exp.stages) == 0 {
		return nil, l.sorted()
	}
	l.narrow()
	p := l.expand()
	p.File, p.remotes = src.name, l.remotes
	if len(l.all) > 0 {
		return p, l.sorted()
	}
	return p, nil
}

// read parses a text whose top is a map.
func (l *loader) read(src *sourceText) *yamlNode {
	root := parseYAML(src, &l.diagnostics)
	if root != nil && root.kind != yamlMap {
		l.report(root, "an experiment begins with name:, axes: and stages:", "an experiment is a map")
		return nil
	}
	return root
}

// extend merges root into the file that its key extends names.
func (l *loader) extend(root *yamlNode) *yamlNode {
	n := root.get("extends")
	if n == nil {
		return root
	}
	if n.kind != yamlText || n.text == "" {
		l.report(n, "", "%v is not the name of a file", n)
		return root
	}
	file := resolvePath(n.src, n.text)
	data, err := readExperiment(file)
	if err != nil {
		l.report(n, "", "the file %q can't be read: %v", n.text, cause(err))
		return root
	}
	base := l.read(&sourceText{name: file, dir: filepath.Dir(file), data: data})
	if base == nil {
		return nil
	}
	if again := base.get("extends"); again != nil {
		l.report(again, "extends reaches one level", "a file that others extend can't extend another")
		return root
	}
	return mergeYAML(base, root)
}
