package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/stagetest"
)

// drawPhotos writes n pictures without a class, with a bright square each, and a mask of the square.
func (w *world) drawPhotos(n, side int, masks bool) {
	w.Helper()
	for i := range n {
		img, mask := image.NewNRGBA(image.Rect(0, 0, side, side)), image.NewGray(image.Rect(0, 0, side, side))
		for k := range side * side {
			x, y := k%side, k/side
			c := color.NRGBA{uint8(40 + x), uint8(80 + y), uint8(60 + 9*i), 255}
			if x > side/4+i && x < side/2+i && y > side/3 && y < side/2 {
				c = color.NRGBA{250, uint8(200 - 20*i), 30, 255}
				mask.SetGray(x, y, color.Gray{255})
			}
			img.Set(x, y, c)
		}
		name := fmt.Sprintf("%d.png", i)
		w.writePNG("photos/"+name, img)
		if masks {
			w.writePNG("photos/masks/"+name, mask)
		}
	}
}

func (w *world) writePNG(name string, m image.Image) {
	w.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		w.Fatal(err)
	}
	w.write(name, b.Bytes())
}

// lacking returns the parts that a text lacks, or has if they begin with !.
func lacking(text string, parts []string) (out []string) {
	for _, part := range parts {
		bare, unwanted := strings.CutPrefix(part, "!")
		if strings.Contains(text, bare) == unwanted {
			out = append(out, part)
		}
	}
	return out
}

// TestNewSuitsTheModel checks which methods and metrics new writes, that check has nothing to say about them,
// and that a run ranks the methods.
func TestNewSuitsTheModel(t *testing.T) {
	runtimeOrSkip(t)
	for _, tt := range []struct {
		net   string
		masks bool
		want  []string
		only  string
	}{
		{"resnet", true, []string{
			"\n    layer-cam: ", "\n    hires-cam: ", "\n    guided-backprop: ", "!tibav", "!attention",
			"masks: 'photos/masks'", "score/iou", "score/pointing-game", "score/mass-accuracy",
			"final one, [40, 8, 8]", "!score/top-1", "architecture, CNN with batch normalisation,",
			"\n  #   vgg-bn, insertion ↑: ", "\n  #   resnet, deletion ↓: ", "!vit, ",
		}, "method=constant,random,saliency,layer-cam"},
		{"vit", false, []string{
			"\n    tibav: ", "\n    attention-rollout: ", "\n    transition-attention: ", "\n    lrp: ",
			"\n    attn-lrp: ", "!\n    layer-cam", "!\n    guided-backprop", "!masks: '", "!score/iou",
			"architecture, ViT,", "\n  #   vit, insertion ↑: ",
		}, "method=constant,random,tibav,lrp"},
	} {
		t.Run(tt.net, func(t *testing.T) {
			w := newWorld(t, nil)
			w.drawPhotos(3, 64, tt.masks)
			made := w.run(0, "new", "--model", net(t, tt.net), "--images", "photos")
			if !strings.Contains(made.stdout, "preset: a guess; no image has a class") ||
				!strings.Contains(made.stdout, "on 3 of 3 images: about a minute on two cores") ||
				!strings.Contains(made.stdout, ": on small nets of it these led (docs/architectures.md)\n") {
				t.Errorf("new says %q", made.stdout)
			}
			file := tt.net + ".yaml"
			text := w.read(file)
			if bad := lacking(text, append(tt.want, "Of fewer than 6 images")); bad != nil {
				t.Errorf("%q in\n%s", bad, text)
			}
			if e := w.run(0, "check", file); strings.Count(e.stderr, "warning: ") != 1 ||
				!strings.Contains(e.stderr, ": 3 images, ") {
				t.Errorf("check says %q", e.stderr)
			}
			w.run(0, "run", file, "--only", tt.only, "--out", "out", "--quiet")
			page := w.read("out/README.md")
			bad := lacking(page, []string{"ranks first", "figures/sheet.svg", "!Nothing can be ranked"})
			if bad != nil {
				t.Errorf("%q in\n%s", bad, page)
			}
		})
	}
}

// TestNewOnRealNets checks presets, layouts, methods and the number of images for published nets and
// photographs, where these are.
func TestNewOnRealNets(t *testing.T) {
	runtimeOrSkip(t)
	data := stagetest.Shared(t, "data")
	type realNet struct {
		model, images string
		want          []string
	}
	for _, tt := range stagetest.Sample(t, 2, []realNet{
		{"cifar10_mlperftiny_resnet8", "cifar10_test_png", []string{
			"preset: raw\n", "layout: nhwc\n", "right on 181 of 200 images", "sample: 50\n",
			"\n    grad-cam: ",
		}},
		{"imagenet_squeezenet1.1_caffe_227", "imagenet_val227", []string{
			"preset: caffe-bgr\n", "crop: 227\n", "\n    # ablation-cam: ", "# 1000 passes an image",
		}},
		{"imagenet_vit_tiny_patch16_224", "imagenet_val227", []string{
			"preset: half\n", "\n    tibav: ", "\n    raw-attention: ", "\n    attn-lrp: ", "sample: ",
		}},
		{"cifar10_cct4_3x1", "cifar10_test_png", []string{
			"\n    # transition-attention, tibav, attention-rollout, raw-attention: the attention ",
			"!What led",
		}},
	}) {
		t.Run(tt.model, func(t *testing.T) {
			w := newWorld(t, nil)
			w.run(0, "new", "--model", filepath.Join(data, "models", tt.model+".onnx"), "--images",
				filepath.Join(data, "images", tt.images))
			text := w.read(tt.model + ".yaml")
			if bad := lacking(text, tt.want); bad != nil {
				t.Errorf("%q in\n%s", bad, text)
			}
			if e := w.run(0, "check", tt.model+".yaml"); e.stderr != "" {
				t.Errorf("check says %q", e.stderr)
			}
		})
	}
}

// TestNewOnTwelvePhotographs holds that twelve photographs of a published vision transformer are enough for
// its preset, whichever they are. Of 340 draws 339 gave it, as the first answer or the only one, and none
// another as certain; these are two.
func TestNewOnTwelvePhotographs(t *testing.T) {
	runtimeOrSkip(t)
	data := stagetest.Shared(t, "data")
	photos := filepath.Join(data, "images", "imagenet_val227")
	list, err := os.ReadFile(filepath.Join(photos, "labels.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(list)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(2) {
		w := newWorld(t, nil)
		labels := "file,label\n"
		for _, i := range rand.New(rand.NewPCG(seed, 12)).Perm(len(rows) - 1)[:12] {
			row := rows[1+i]
			b, err := os.ReadFile(filepath.Join(photos, row[0]))
			if err != nil {
				t.Fatal(err)
			}
			w.write("photos/"+row[0], b)
			labels += row[0] + "," + row[1] + "\n"
		}
		w.write("photos/labels.csv", []byte(labels))
		const net = "imagenet_vit_tiny_patch16_224"
		e := w.run(0, "new", "--model", filepath.Join(data, "models", net+".onnx"), "--images", "photos")
		if !strings.Contains(w.read(net+".yaml"), "preset: half\n") {
			t.Errorf("draw %d: new says\n%s", seed, e.stdout)
		}
		doubt := strings.Contains(e.stderr, "which one was the model trained with?")
		if doubt != strings.Contains(e.stderr, "hint: choose the model's preset in it; next: ") {
			t.Errorf("draw %d: new warns\n%s", seed, e.stderr)
		}
	}
}
