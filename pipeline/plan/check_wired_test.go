package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestCheckSeesWhatIsWired: what is implied for an input doesn't count as wired, and nothing more is implied
// for a cell that was refused.
func TestCheckSeesWhatIsWired(t *testing.T) {
	c := paperCatalog()
	fake(c, "attribute/picky", stages.Each, "model, images, targets?", "maps", attrParams{Target: "label"},
		func(d *stages.Def[attrParams]) {
			d.Check = func(_ attrParams, wired func(string) bool) error {
				if wired("targets") {
					return errors.New("targets is wired")
				}
				return nil
			}
		})
	fake(c, "model/predict", stages.Each, "model, images", "targets, scores", predictParams{},
		func(d *stages.Def[predictParams]) {
			d.Check = func(p predictParams, _ func(string) bool) error {
				if p.Target != "label" {
					return errors.New("the target isn't the consumer's")
				}
				return nil
			}
		})
	text := strings.Replace(base, "  maps: ",
		"  guess: {uses: model/predict, in: {model: model, images: images}, with: {target: label}}\n"+
			"  picky: ", 1)
	text = strings.Replace(text, `uses: "${method}", matrix: [method], in: {model: model, images: images}`,
		"uses: attribute/picky, in: {model: model, images: images%s}", 1)
	text = strings.Replace(text,
		"  method:\n    s: {uses: attribute/saliency, with: {abs: true}}\n    r: {uses: attribute/random}\n",
		"", 1) + "publish: [picky]\n"
	mustParse(t, c, fmt.Sprintf(text, ""), Overrides{})
	ds := diagsOf(t, c, fmt.Sprintf(text, ", targets: guess"), Overrides{})
	if len(ds) != 1 || !strings.Contains(ds[0].Msg, "targets is wired") {
		t.Errorf("got %v", ds)
	}
}
