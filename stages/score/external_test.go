package score

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

const published = `method,model,image,value
saliency,vgg,a.png,0.25
saliency,vgg,b.png,
saliency,resnet,a.png,-3e-2
"grad-cam",vgg, a.png,NaN
`

func table(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scores.csv")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestExternal checks which rows a cell reads, by item and for all.
func TestExternal(t *testing.T) {
	path := table(t, published)
	for _, c := range []struct {
		where []string
		item  string
		want  []float64
	}{
		{[]string{"method=saliency", "model=vgg"}, "image", []float64{0.25, math.NaN()}},
		{[]string{"method=saliency", "model=resnet"}, "image", []float64{-0.03}},
		{[]string{"method=saliency", "model=resnet"}, "", []float64{-0.03}},
		{[]string{"method=grad-cam"}, "image", []float64{math.NaN()}},
	} {
		p := *External.NewParams().(*ExternalParams)
		p.Path, p.Where, p.Item, p.Direction, p.Unit = path, c.where, c.item, "lower", "share"
		r := stagetest.Run(t, External, &p, nil)
		check(t, r, "scores", 0, c.want...)
		if m := stages.MeasureOf(r.Facts["scores"]); m.Direction != stages.Lower || m.Unit != "share" {
			t.Errorf("%+v", m)
		}
		sources, err := External.Sources(&p, nil)
		id := map[string]string{"image": "a.png", "": "all"}[c.item]
		if err != nil || sources[0].ID != id {
			t.Errorf("%v: sources %v, %v", c.where, sources, err)
		}
	}
}

// TestExternalRefuses checks that errors tell the file, the line and what to do.
func TestExternalRefuses(t *testing.T) {
	for _, c := range []struct{ text, where, item, part string }{
		{published, "method=saliency", "",
			"scores.csv:3: a second row that the parameters choose, after line 2"},
		{published, "method=saliency", "image", `scores.csv:4: "a.png" again, first in line 2`},
		{published, "method=lime", "image", "scores.csv has no row with method=lime"},
		{published, "net=vgg", "image", `scores.csv has no column "net", only method, model, image, value`},
		{published, "method=saliency", "file", `no column "file"`},
		{"method,value\na,1\n\nb,x\n", "method=b", "", `scores.csv:4: the value "x" is no number`},
		{"method,value\na,1,2\n", "method=a", "", "wrong number of fields"},
		{"method,score\na,1\n", "method=a", "", `no column "value"`},
		{"method,image,value\na,,1\n", "method=a", "image", "scores.csv:2: the row has no image"},
		{"", "method=a", "", "no line that names the columns"},
	} {
		p := *External.NewParams().(*ExternalParams)
		p.Path, p.Where, p.Item = table(t, c.text), []string{c.where}, c.item
		if _, err := External.Sources(&p, nil); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s, item %q: error %v, want one with %q", c.where, c.item, err, c.part)
		}
	}
	for part, p := range map[string]ExternalParams{
		"path is required":               {},
		"isn't of the form column=text":  {Path: "x", Where: []string{"method"}},
		`where has "=x", which isn't of`: {Path: "x", Where: []string{"=x"}},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want one with %q", err, part)
		}
	}
}
