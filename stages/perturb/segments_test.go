package perturb

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

func TestSegments(t *testing.T) {
	image := stages.NewTensor(make([]uint8, 3*3*4), 3, 3, 4).Encode()
	mask := stages.NewTensor([]uint8{
		0, 0, 0, 0,
		0, 1, 1, 0,
		0, 1, 1, 0,
	}, 3, 4).Encode()
	for name, tt := range map[string]struct {
		cell int
		mask []byte
		want []uint32
	}{
		"grid": {2, nil, []uint32{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3}},
		"mask": {0, mask, []uint32{0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0}},
		"both": {3, mask, []uint32{0, 0, 0, 2, 0, 1, 1, 2, 0, 1, 1, 2}},
	} {
		in := map[string][]stages.Data{"images": {stagetest.Items(nil, image)}}
		if tt.mask != nil {
			in["masks"] = []stages.Data{stagetest.Items(nil, tt.mask)}
		}
		got, err := stages.DecodeTensor(stagetest.Run(t, Segments, &SegmentsParams{tt.cell},
			in).Payloads["segments"][0])
		if err != nil || !slices.Equal(got.Uint32s(), tt.want) || !slices.Equal(got.Shape, []int{3, 4}) {
			t.Errorf("%s: %v of shape %v, want %v (%v)", name, got.Uint32s(), got.Shape, tt.want, err)
		}
	}
}
