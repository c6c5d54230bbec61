package plan

import (
	"strings"
	"testing"
)

// TestResolvedHasOneLayout tests that comments, quotes, anchors and the layout of an experiment don't change
// what is published of it.
func TestResolvedHasOneLayout(t *testing.T) {
	flow := `name: x
axes: {model: [b, a], method: {s: {uses: attribute/saliency, with: {abs: true}}, r: {uses: attribute/random}}}
stages:
  images: {uses: dataset/shapes, with: {size: 32}}
  model: {uses: model/onnx, matrix: [model], with: {path: "${model}.onnx", mean: [1, 2]}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
publish: [maps]
`
	block := `# Of two models.
name: "x" # short
axes:
  model: &models
    - b
    - a
  method:
    s: {uses: 'attribute/saliency', with: {abs: true}}
    r:
      uses: attribute/random
stages:
  images:
    uses: dataset/shapes

    with: {size: 32}
  model:
    uses: model/onnx
    matrix: [model]
    with:
      path: ${model}.onnx
      mean: [1, 2]
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
publish: [
  maps]
`
	p, q := mustParse(t, paperCatalog(), flow, Overrides{}), mustParse(t, paperCatalog(), block, Overrides{})
	if a, b := string(p.Resolved()), string(q.Resolved()); a != b {
		t.Errorf("resolved to\n%s\nand to\n%s", a, b)
	}
	checkReadBack(t, p, "")
}

// TestResolvedHidesAbsolutePaths tests that of an absolute path, wherever it is, the last element alone is
// published.
func TestResolvedHidesAbsolutePaths(t *testing.T) {
	text := `name: x
axes: {model: {a: {path: /secret/a.onnx, more: [/secret/b, [/secret/c]]}}}
stages:
  model: {uses: model/onnx, matrix: [model], with: {path: "${model.path}"}}
  other: {uses: model/onnx, with: {path: "/secret/${model}.onnx"}, matrix: [model]}
publish: [model, other]
`
	p := mustParse(t, paperCatalog(), text, Overrides{Set: []string{"axes.model.a.list=[/secret/d, 1]"}})
	got := string(p.Resolved())
	for line := range strings.Lines(got) {
		if strings.Contains(line, "secret") {
			t.Errorf("published: %s", line)
		}
	}
	for _, part := range []string{"path: a.onnx", "more: [b, [c]]", "path: '${model}.onnx'", "list: [d, 1]"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
}
