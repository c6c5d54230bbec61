package publish

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestLabels checks that people read labels in README.md and LaTeX, and programs ids in all other files; and
// that the folder on disk shows what it did when it was written.
func TestLabels(t *testing.T) {
	table := stages.Table{Title: "Scores", Keys: []string{"method", "reference"}, Numbers: []stages.Column{
		{Name: "vgg a", Label: "VGG-16 · x_1", Direction: stages.Higher, Digits: 1},
		{Name: "vgg a low", Label: "VGG-16 · x_1 low", Digits: 1},
		{Name: "vgg a high", Label: "VGG-16 · x_1 high", Digits: 1},
		{Name: "vgg b", Label: "VGG-16 · b", Direction: stages.Lower, Digits: 1},
		{Name: "n"},
	}}
	for _, m := range []string{"ig", "random"} {
		table.Rows = append(table.Rows, stages.Row{Keys: []string{m, "ig"}, Numbers: []stages.Number{1, 0, 2,
			3, 4}})
	}
	yaml := "name: x\naxes:\n  method: {ig: {label: Integrated & Gradients}, random: {}}\n" +
		"  net: {vgg: {label: VGG-16}}\n  set: {a: {label: x_1}, b: {}}\n"
	r := &Results{Name: "x", Experiment: []byte(yaml), Publish: []string{"t"},
		Order: stages.Order{"method": {"ig", "random"}, "net": {"vgg"}, "set": {"a", "b"}},
		Labels: stages.Names{"method": {"ig": "Integrated & Gradients"}, "net": {"vgg": "VGG-16"},
			"set": {"a": "x_1"}},
	}
	r.Cells = []Cell{{Name: "t[net=vgg]", Stage: "t", N: -1, Coord: []stages.Coord{{Axis: "net", ID: "vgg"}},
		Definition: stages.Sum([]byte("t")), Tables: []Table{{"table", table}}}}
	dir, files := fresh(t, r)
	for name, want := range map[string]string{
		"README.md": "| net | method | reference | VGG-16 · x_1 ↑ [95 % interval] | VGG-16 · b ↓ |\n" +
			"| :-- | :-- | :-- | --: | --: |\n" +
			"| VGG-16 | Integrated & Gradients | Integrated & Gradients | 1.0 [0.0, 2.0] | 3.0 |\n" +
			"| VGG-16 | random | Integrated & Gradients | ",
		"tables/t.tex": " &  &  & \\multicolumn{2}{c}{VGG-16} &  \\\\\n\\cmidrule(lr){4-5}\n" +
			"net & method & reference & x\\_1 $\\uparrow$ & b $\\downarrow$ & n \\\\\n\\midrule\n" +
			"VGG-16 & Integrated \\& Gradients & Integrated \\& Gradients & ",
		"tables/t.csv":  "net,method,reference,vgg a,vgg a low,vgg a high,vgg b,n\nvgg,ig,ig,1,0,2,3,4\n",
		"cells/t.jsonl": `"cell":"t[net=vgg]"`,
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s is\n%s\nwithout\n%s", name, files[name], want)
		}
	}
	v, err := ReadVersion(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := v.Folder()
	if err != nil {
		t.Fatal(err)
	}
	s := f.Sheets[0]
	if s.title() != "Scores" || s.Numbers[0].Direction != stages.Higher ||
		s.Numbers[3].Direction != stages.Lower {
		t.Errorf("read back: %q %+v", s.title(), s.Numbers)
	}
}
