package plan

import (
	"path/filepath"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// A Catalog finds stages by name. The registry's sets are catalogs.
type Catalog interface {
	Lookup(name string) (*stages.Stage, bool)
	Names() []string // sorted
}

// Overrides are what the command line says about an experiment, and asks of it.
type Overrides struct {
	// Set holds assignments such as maps.with.steps=64, axes.model.vgg.path=x.onnx
	// and seed=3.
	Set []string
	// Only holds lines such as method=ig,saliency: of an axis, only these ids.
	Only []string
	// Limit is the largest number of sources a cell may use; 0 means all.
	Limit int
	// Fits, if set, is asked of every cell that nothing else is wrong with. Its error
	// is a complaint, of a parameter if it wraps a [stages.FieldError].
	Fits func(*Cell) error
	// Dir is what the paths in Set are relative to; "" means the working folder.
	Dir string
}

// Load reads, checks and expands an experiment file. When the experiment is at
// fault the error is [Diags], and the plan beside it is good for nothing but
// being counted: stages that don't exist are taken to accept anything.
func Load(file string, cat Catalog, o Overrides) (*Plan, error) {
	data, err := readExperiment(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, data, filepath.Dir(file), cat, o)
}

// Parse is [Load] for an experiment that is already in memory: name stands in
// messages, the paths in src are relative to dir. It reads no file but the one
// that extends names.
func Parse(name string, src []byte, dir string, cat Catalog, o Overrides) (*Plan, error) {
	l := newLoader(cat, o)
	return l.load(&sourceText{name: name, dir: dir, data: src})
}

// maxCells bounds a plan. A hundred thousand is a large study.
const maxCells = 1_000_000

// A loader turns an experiment's text into a plan.
type loader struct {
	complaints
	catalog Catalog
	o       Overrides
	limit   int // of cells
	exp     *experimentDecl
	names   []string // of the catalog, once needed
}

func newLoader(cat Catalog, o Overrides) *loader {
	return &loader{catalog: cat, o: o, limit: maxCells}
}

func (l *loader) load(src *sourceText) (*Plan, error) {
	root := l.read(src)
	if root == nil {
		return nil, l.sorted()
	}
	root = l.extend(root)
	if root == nil {
		return nil, l.sorted()
	}
	root, sets := l.override(root)
	l.exp = l.experiment(root, sets)
	if l.exp == nil {
		return nil, l.sorted()
	}
	l.only()
	if l.o.Limit < 0 {
		l.put(Diag{File: "--limit " + strconv.Itoa(l.o.Limit), Msg: "a limit is a positive number"})
	}
	p := l.expand()
	p.File = src.name
	if len(l.list) > 0 {
		return p, l.sorted()
	}
	return p, nil
}

// read parses a text whose top is a map.
func (l *loader) read(src *sourceText) *yamlNode {
	if !src.checkText(&l.complaints) {
		return nil
	}
	root := parseYAML(src, &l.complaints)
	if root == nil {
		return nil
	}
	if root.kind != yamlMap {
		l.at(root, "an experiment begins with name:, axes: and stages:", "an experiment is a map")
		return nil
	}
	return root
}

// extend lays root over the file that its key extends names.
func (l *loader) extend(root *yamlNode) *yamlNode {
	n := root.get("extends")
	if n == nil {
		return root
	}
	if n.kind != yamlText || n.text == "" {
		l.at(n, "", n.String()+" is not the name of a file")
		return root
	}
	file := n.text
	if !filepath.IsAbs(file) {
		file = filepath.Join(n.src.dir, filepath.FromSlash(file))
	}
	data, err := readExperiment(file)
	if err != nil {
		l.at(n, "", "the file "+strconv.Quote(n.text)+" can't be read: "+cause(err).Error())
		return root
	}
	base := l.read(&sourceText{name: file, dir: filepath.Dir(file), data: data})
	if base == nil {
		return nil
	}
	if again := base.get("extends"); again != nil {
		l.at(again, "extends reaches one level", "a file that others extend can't extend another")
		return root
	}
	return mergeYAML(base, root)
}

// suggestStage is the hint for a stage that the catalog doesn't have.
func (l *loader) suggestStage(name string) string {
	if l.names == nil {
		l.names = l.catalog.Names()
	}
	return SuggestStage(name, l.names)
}
