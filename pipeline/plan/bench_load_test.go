package plan

import (
	"fmt"
	"strings"
	"testing"
)

// gridText is an experiment of one stage with n × n cells.
func gridText(n int) string {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprint(i+1))
	}
	list := strings.Join(ids, ", ")
	return "name: grid\naxes:\n  a: [" + list + "]\n  b: [" + list + "]\nstages:\n" +
		"  images: {uses: dataset/shapes, matrix: [a, b], with: {count: 2, seed: \"${a}\", first: " +
		"\"${b}\"}}\npublish: [images]\n"
}

// chainText is an experiment with n methods and n models: maps, an implied prediction, ranks, curves and a
// score for each pair.
func chainText(n int) string {
	var models, methods strings.Builder
	for i := range n {
		fmt.Fprintf(&models, "    m%d: {path: m%d.onnx}\n", i, i)
		fmt.Fprintf(&methods, "    a%d: {uses: attribute/integrated-gradients, with: {steps: %d}}\n", i, i+1)
	}
	return "name: chain\naxes:\n  model:\n" + models.String() + "  method:\n" + methods.String() + `stages:
  images: {uses: dataset/shapes}
  model: {uses: model/onnx, matrix: [model], with: {path: "${model.path}"}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  curves: {uses: perturb/deletion, in: {model: model, images: images, maps: maps}}
  auc: {uses: score/auc, in: {curves: curves}}
  ranks: {uses: fuse/meta-rank, in: {scores: auc}, over: all}
publish: [ranks]
`
}

func benchCatalog() fakeCatalog {
	c := paperCatalog()
	type params struct {
		Count int `yaml:"count" doc:"images" key:"-" min:"1"`
		First int `yaml:"first" doc:"number" key:"-" min:"0"`
		Size  int `yaml:"size" doc:"pixels" min:"16" max:"1024"`
		Seed  int `yaml:"seed" doc:"of the draws" min:"0"`
		Dom   dom `yaml:"domain" doc:"look"`
	}
	fake(c, "dataset/shapes", 0, "", "images, labels, masks", params{Count: 64, Size: 64, Dom: 'a'})
	return c
}

func BenchmarkLoad(b *testing.B) {
	for _, bc := range []struct {
		name, text string
		cells      int
	}{{"grid10000", gridText(100), 10_000}, {"chain", chainText(50), 1 + 50 + 50 + 4*2500 + 1}} {
		c := benchCatalog()
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := Parse("x.yaml", []byte(bc.text), "", c, Overrides{})
				if err != nil {
					b.Fatal(err)
				}
				if len(p.Cells) != bc.cells {
					b.Fatalf("%d cells, want %d", len(p.Cells), bc.cells)
				}
			}
		})
		b.Run(bc.name+"/resolved", func(b *testing.B) {
			p, err := Parse("x.yaml", []byte(bc.text), "", c, Overrides{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				p.Resolved()
			}
		})
	}
}
