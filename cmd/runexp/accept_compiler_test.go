package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

const compilerYAML = `name: compiler
seed: 3
axes:
  model:
    resnet: {path: resnet.onnx}
    vgg:    {path: vgg-bn.onnx}
    vit:    {path: vit.onnx}
  method:
    ig:       {uses: attribute/integrated-gradients, with: {steps: 2}}
    lrp:      {uses: attribute/lrp-epsilon}
    occlusion: {uses: attribute/occlusion, with: {window: 32, stride: 32}}
    saliency: {uses: attribute/saliency}
stages:
  images: {uses: dataset/shapes, with: {count: 2, size: 64}}
  model:  {uses: model/onnx, matrix: [model], with: {path: "${model.path}", preset: half}}
  maps:   {uses: "${method}", matrix: [method], in: {model: model, images: images}}
  mass:   {uses: score/mass-accuracy, in: {maps: maps, masks: images.masks}}
  table:  {uses: report/table, in: {values: mass}, over: all, with: {rows: [method]}}
publish: [table]
`

// TestChangedCompiler holds that a build that compiles some programs differently runs the cells of these
// again and no others, that why names them, and that a build that changes nothing of them runs nothing.
func TestChangedCompiler(t *testing.T) {
	stagetest.InTurn(t, 1, 2) // coprime to the sample of the changes
	runtimeOrSkip(t)
	if testing.Short() {
		t.Skip("it builds the command five times")
	}
	w := newWorld(t, map[string]string{"experiments/compiler.yaml": compilerYAML})
	for _, name := range []string{"resnet", "vgg-bn", "vit"} {
		b, err := os.ReadFile(net(t, name))
		if err != nil {
			t.Fatal(err)
		}
		w.write("experiments/"+name+".onnx", b)
	}
	const file = "experiments/compiler.yaml"
	as := func(binary string, args ...string) ending {
		t.Helper()
		e := w.command(binary, args...)
		if e.code != 0 {
			t.Fatalf("runexp %s: %d\n%s", strings.Join(args, " "), e.code, e.stderr)
		}
		return e
	}
	original := buildWith(t, "", "", "")
	as(original, "run", file)
	for _, c := range stagetest.Sample(t, 3, []struct {
		what, file, was, is string
		cells               []string // of maps
	}{
		{what: "a comment", file: "rule_epsilon.go", was: "// Epsilon is", is: "// Here, Epsilon is"},
		{
			what: "a rule", file: "rule_epsilon.go", was: "l.output(b), epsilon, anySign",
			is: "l.output(b), epsilon+0.5, anySign",
			cells: []string{"maps[method=lrp,model=resnet]", "maps[method=lrp,model=vgg]",
				"maps[method=lrp,model=vit]"},
		},
		{
			what: "an operator of one net", file: "op_layernormalization.go",
			was: "b.Mul(b.Sub(g, along), r)", is: "b.Mul(b.Sub(along, g), r)",
			cells: []string{"maps[method=ig,model=vit]", "maps[method=saliency,model=vit]"},
		},
	}) {
		t.Run(c.what, func(t *testing.T) {
			changed := buildWith(t, c.file, c.was, c.is)
			if c.cells != nil {
				out := as(changed, "why", file, c.cells[0]).stdout
				if !strings.Contains(out, "the compiler changed this program: ") {
					t.Errorf("why prints %q", out)
				}
			}
			e := w.command(changed, "run", file, "--json")
			if want := map[bool]int{true: exitDiffers}[c.cells != nil]; e.code != want {
				t.Errorf("exit code %d, want %d: what's published has the same definitions and other "+
					"values\n%s", e.code, want, e.stderr)
			}
			var maps []string
			for _, cell := range e.executed(t) {
				if strings.HasPrefix(cell, "maps") || strings.HasPrefix(cell, "model") ||
					strings.HasPrefix(cell, "images") {
					maps = append(maps, cell)
				}
			}
			if !slices.Equal(maps, c.cells) {
				t.Errorf("executed %q, want %q", maps, c.cells)
			}
			wantCells(t, "the same build again", as(changed, "run", file, "--json", "--accept").executed(t),
				"")
			wantCells(t, "the first build again", as(original, "run", file, "--json", "--accept").executed(t),
				"")
		})
	}
}

// buildWith builds the command, with a text of a file of package relevance changed.
func buildWith(t *testing.T, file, was, is string) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"build", "-o", filepath.Join(dir, "runexp")}
	if file != "" {
		path, err := filepath.Abs(filepath.Join("..", "..", "stages", "internal", "relevance", file))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(b), was) != 1 {
			t.Fatalf("%s doesn't have %q once", file, was)
		}
		changed := filepath.Join(dir, file)
		if err := os.WriteFile(changed, []byte(strings.Replace(string(b), was, is, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o666); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-overlay", filepath.Join(dir, "overlay.json"))
	}
	cmd := exec.Command("go", append(args, ".")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "runexp")
}
