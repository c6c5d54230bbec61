package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestDocsTutorial follows docs/tutorial.md from its first command to the last, in a folder with a net and
// images of the quickstart.
func TestDocsTutorial(t *testing.T) {
	runtimeOrSkip(t)
	needsGit(t)
	p := openPage(t, "tutorial.md")
	defer p.close()
	p.write("net.onnx", []byte(page(t, "experiments/quickstart/resnet.onnx")))
	writePhotos(p.world)
	p.follow(20)
}

// TestDocsTutorialText follows docs/tutorial-text.md, in a folder with the net and texts of experiments/text.
func TestDocsTutorialText(t *testing.T) {
	runtimeOrSkip(t)
	p := openPage(t, "tutorial-text.md")
	defer p.close()
	for _, name := range []string{"reviews.onnx", "tokenizer.json", "reviews.csv"} {
		p.write(name, []byte(page(t, "experiments/text/"+name)))
	}
	p.follow(9)
}

// follow runs the commands of a page, of which there are at least as many as least.
func (p *docPage) follow(least int) {
	p.Helper()
	commands := 0
	for _, f := range fencesOf(p.text) {
		switch kind, file, _ := strings.Cut(f.info, " "); kind {
		case "yaml":
			if file != "" {
				p.write(file, []byte(f.body))
			}
		case "console":
			commands += strings.Count("\n"+f.body, "\n$ ")
			p.console(f)
		case "python", "sh": // needs PyTorch or transformers
		default:
			p.Errorf("%s:%d: what is %q?", p.file, f.line, f.info)
		}
	}
	if commands < least {
		p.Errorf("%d commands", commands)
	}
}

// writePhotos writes an image of each of the first six of the quickstart's classes, into a folder per class.
func writePhotos(w *world) {
	w.Helper()
	s := dataset.Shapes
	r := stagetest.Run(w, s, &dataset.ShapesParams{Count: 12, Size: 64, Seed: 1000007, Domain: "a"}, nil)
	names := strings.Split(r.Facts["images"]["labels"], "\n")
	for i, payload := range r.Payloads["images"] {
		t, err := stages.DecodeTensor(payload)
		if err != nil {
			w.Fatal(err)
		}
		label, err := stages.DecodeTensor(r.Payloads["labels"][i])
		if err != nil {
			w.Fatal(err)
		}
		side := t.Shape[1]
		photo := image.NewNRGBA(image.Rect(0, 0, side, side))
		for y := range side {
			for x := range side {
				at := func(channel int) uint8 { return t.Raw[(channel*side+y)*side+x] }
				photo.SetNRGBA(x, y, color.NRGBA{at(0), at(1), at(2), 255})
			}
		}
		var b bytes.Buffer
		if err := png.Encode(&b, photo); err != nil {
			w.Fatal(err)
		}
		class := int(label.Float64s()[0])
		if class >= 6 { // the others suffice
			continue
		}
		folder := strings.ReplaceAll(names[class], " ", "-")
		w.write(fmt.Sprintf("photos/%02d-%s/%02d.png", class, folder, i), b.Bytes())
	}
}
