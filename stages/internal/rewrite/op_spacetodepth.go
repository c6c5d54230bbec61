package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// SpaceToDepth has from 28 on a mode: CRD puts the elements of a block next to each other, for each
// channel.
var spaceToDepth = []converter{{"SpaceToDepth", 28, Newest, func(e *edit, n onnx.Node) error {
	mode := n.Text("mode", "DCR")
	drop(n, "mode")
	if mode == "DCR" {
		e.keep(n)
		return nil
	}
	s, err := e.fixed(n.In(0))
	if err != nil {
		return err
	}
	b := n.Int("blocksize", 0)
	if mode != "CRD" || len(s) != 4 || b < 1 || s[2]%b != 0 || s[3]%b != 0 {
		return fmt.Errorf("blocks of %d don't fit %v in mode %q", b, s, mode)
	}
	hint := n.Output[0]
	parts := e.reshape(hint, n.In(0), s[0], s[1], s[2]/b, b, s[3]/b, b)
	e.reshapeTo(hint, e.transpose(hint, parts, 0, 1, 3, 5, 2, 4), s[0], s[1]*b*b, s[2]/b, s[3]/b)
	return nil
}}}
